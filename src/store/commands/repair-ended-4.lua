--[[
  Adds subjects to `ended` that have a snapshot, and are neither tracked nor named. A subject whose snapshot is gone leaves
  `changedSubjects`.

  KEYS
    ended            zset  subject -> time from which it is in its state, ms
    plan             hash  clock of the plan of the endpoint group of these subjects (include/plan.lua)
    wanted           hash  subscription key -> time from which a subscription names it (ms)
    changedSubjects  zset  subject -> time of its last change, ms

  ARGV
    subjectPrefix  text     prefix of the keys of snapshots
    subjects       ...text

  returns number
    Number of added subjects.
]]
-- @include claims
-- @include confirmed-time
-- @include ended
local found = 0
for index = 1, #ARGV.subjects do
  local subject = ARGV.subjects[index]
  local key = ARGV.subjectPrefix .. subject
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', KEYS.changedSubjects, subject)
  elseif not redis.call('ZSCORE', KEYS.ended, subject) and redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 0 then
    if not isNamedBy(currentClaims(prefixOf(key, subject) .. ':claims:' .. subject, KEYS.wanted), subject) then
      noteEnded(key, subject)
      found = found + 1
    end
  end
end
return found
