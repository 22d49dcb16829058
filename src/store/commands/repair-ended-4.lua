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
local subjects, keys, found = ARGV.subjects, {}, 0
if #subjects == 0 then return 0 end
for index, subject in ipairs(subjects) do keys[index] = ARGV.subjectPrefix .. subject end
-- In most calls all are there, and all are tracked or have ended.
local areStored = redis.call('EXISTS', unpack(keys)) == #keys
local ended = redis.call('ZMSCORE', KEYS.ended, unpack(subjects))
local items = redis.call('HMGET', KEYS.plan .. ':items', unpack(subjects))
for index, subject in ipairs(subjects) do
  local key = keys[index]
  if not areStored and redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', KEYS.changedSubjects, subject)
  elseif not ended[index] and not items[index] then
    if not isNamedBy(currentClaims(prefixOf(key, subject) .. ':claims:' .. subject, KEYS.wanted), subject) then
      noteEnded(key, subject)
      found = found + 1
    end
  end
end
return found
