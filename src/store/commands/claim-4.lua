--[[
  Adds claims to a subject, and requests the poll that serves them.

  KEYS
    claims   hash  subscription key -> claim
    plan     hash  clock of the plan of the subject's endpointGroup (include/plan.lua)
    subject  hash  snapshot
    wanted   hash  subscription key -> time from which a subscription names it (ms)

  ARGV
    subject  text  subject id
    claims   json  list of { key, at: ms as text, before: seconds as text or "" }
    atMs     text?  time of the plan, ms; none for Redis time

  returns flag
    True when a claim was new and the subject has to be polled. A stored claim stays as it is, also a served one.
]]
-- @include plan
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
-- @include suspended
local added, isCurrent = 0, false
if redis.call('EXISTS', KEYS.subject) == 0 then restoreCompact(prefixOf(KEYS.subject, ARGV.subject), ARGV.subject) end
for _, claim in ipairs(cjson.decode(ARGV.claims)) do
  local stored = redis.call('HGET', KEYS.claims, claim.key)
  local isSame = stored and string.match(stored, '^(%d+):') == claim.at
  if not isSame and not isCurrent then
    currentClaims(KEYS.claims, KEYS.wanted)
    isCurrent, stored = true, redis.call('HGET', KEYS.claims, claim.key)
  end
  if redis.call('HGET', KEYS.wanted, claim.key) == claim.at and (not stored or string.match(stored, '^(%d+):') ~= claim.at) then
    redis.call('HSET', KEYS.claims, claim.key, claim.at .. ':' .. claim.before .. ':0')
    added = 1
  end
end
if added == 1 then
  local plan = openPlan(KEYS.plan, ARGV.atMs)
  local isSpare = isOut(KEYS.claims, KEYS.wanted)
  if not isSpare then recall(plan, ARGV.subject) end
  requestPoll(plan, ARGV.subject, isSpare and not getItem(plan, ARGV.subject) and 'spare' or 'requested')
end
return added
