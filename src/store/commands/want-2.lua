--[[
  Notes that subscriptions name subjects, claims those for them, and has them polled, in one step: what is wanted has a
  claim, also after a crash.

  KEYS[1] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[2] plan       hash    clock of the plan of the endpoint group of these subjects (include/plan.lua)

  ARGV[1] prefix of the keys of claims
  ARGV[2] prefix of the keys of snapshots
  ARGV[3] the plan's time, ms; "" for that of Redis
  ARGV[4] since hash: key of when roots were subscribed on the upstream's clock
  ARGV[5..] root, subject, since when (ms; "" for now), root that it continues ("" for none), ...

  Returns how many were named anew. One that continues another has its claim and its start, and is not polled for that.
]]
-- @include plan
local time = redis.call('TIME')
local nowText = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local plan = openPlan(KEYS[2], ARGV[3])
local new = 0
for i = 5, #ARGV, 4 do
  local root, subject, at, from = unpack(ARGV, i, i + 3)
  local claimsKey = ARGV[1] .. subject
  local since = redis.call('HGET', KEYS[1], root)
  if not since or not string.match(since, '^%d+$') then
    since = at ~= '' and at or nowText
    redis.call('HSET', KEYS[1], root, since)
  end
  local upstream = from ~= '' and redis.call('HGET', ARGV[4], from)
  if upstream and string.match(upstream, '^(%d+):') == since then redis.call('HSETNX', ARGV[4], root, upstream) end
  local stored = redis.call('HGET', claimsKey, root)
  if not stored or string.match(stored, '^(%d+):') ~= since then
    local continued = from ~= '' and redis.call('HGET', claimsKey, from)
    local isContinued = continued and string.match(continued, '^(%d+):') == since
    redis.call('HSET', claimsKey, root, isContinued and continued or since .. '::0')
    redis.call('PERSIST', claimsKey)
    redis.call('PERSIST', ARGV[2] .. subject)
    if not isContinued then
      recall(plan, subject)
      ask(plan, subject, 'first')
    end
    new = new + 1
  end
end
return new
