--[[
  Adds subjects to `ended` that belong there: with a snapshot, not tracked, not named. One whose snapshot is gone leaves the
  list of those that changed.

  KEYS[1] ended      zset    subject -> since when it is in its state, ms
  KEYS[2] plan       hash    clock of the plan of the endpoint group of these subjects (include/plan.lua)
  KEYS[3] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[4] changed    zset    subject -> when it changed last, ms

  ARGV[1] prefix of the keys of snapshots
  ARGV[2..] subjects

  Returns how many were added.
]]
-- @include claims
-- @include confirmed-time
-- @include ended
local found = 0
for index = 2, #ARGV do
  local subject = ARGV[index]
  local key = ARGV[1] .. subject
  if redis.call('EXISTS', key) == 0 then
    redis.call('ZREM', KEYS[4], subject)
  elseif not redis.call('ZSCORE', KEYS[1], subject) and redis.call('HEXISTS', KEYS[2] .. ':items', subject) == 0 then
    if not isNamedBy(currentClaims(rootOf(key, subject) .. ':claims:' .. subject, KEYS[3]), subject) then
      noteEnded(key, subject)
      found = found + 1
    end
  end
end
return found
