--[[
  Gives a subject claims that its next poll will serve, and has it looked at.

  KEYS[1] claims     hash    root -> claim
  KEYS[2] plan       hash    clock of the plan of the subject's endpointGroup (include/plan.lua)
  KEYS[3] subject    hash    snapshot
  KEYS[4] wanted     hash    root -> since when a subscription names it (ms)

  ARGV[1] subject id
  ARGV[2] claims as JSON array of { root, at: ms as text, before: seconds as text or "" }
  ARGV[3] the plan's time, ms; "" for that of Redis

  Returns 1 when a claim was new and the subject has to be looked at, else 0. A claim that was there is left as it is,
  also when it was served.
]]
-- @include plan
-- @include claims
-- @include suspended
local added, isCurrent = 0, false
for _, claim in ipairs(cjson.decode(ARGV[2])) do
  local stored = redis.call('HGET', KEYS[1], claim.root)
  local isKnown = stored and string.match(stored, '^(%d+):') == claim.at
  if not isKnown and not isCurrent then
    currentClaims(KEYS[1], KEYS[4])
    isCurrent, stored = true, redis.call('HGET', KEYS[1], claim.root)
  end
  if redis.call('HGET', KEYS[4], claim.root) == claim.at and (not stored or string.match(stored, '^(%d+):') ~= claim.at) then
    redis.call('HSET', KEYS[1], claim.root, claim.at .. ':' .. claim.before .. ':0')
    added = 1
  end
end
if added == 1 then
  local plan = openPlan(KEYS[2], ARGV[3])
  local isSpare = isOut(KEYS[1], KEYS[4])
  if not isSpare then recall(plan, ARGV[1]) end
  ask(plan, ARGV[1], isSpare and not getItem(plan, ARGV[1]) and 'spare' or 'asked')
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[3])
end
return added
