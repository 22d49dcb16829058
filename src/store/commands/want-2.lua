--[[
  Notes that subscriptions name subjects, claims those for them, and has them looked at, in one step: what is wanted has a
  claim, also after a crash.

  KEYS[1] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[2] plan       hash    clock of the plan of the surface of these subjects (include/plan.lua)

  ARGV[1] prefix of the keys of claims
  ARGV[2] prefix of the keys of snapshots
  ARGV[3] the plan's time, ms; "" for that of Redis
  ARGV[4..] root, subject, …

  Returns how many were named anew.
]]
-- @include plan
local time = redis.call('TIME')
local at = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local plan = openPlan(KEYS[2], ARGV[3])
local new = 0
for i = 4, #ARGV, 2 do
  local root, subject = ARGV[i], ARGV[i + 1]
  local since = redis.call('HGET', KEYS[1], root)
  if not since or not string.match(since, '^%d+$') then
    since = at
    redis.call('HSET', KEYS[1], root, at)
  end
  local stored = redis.call('HGET', ARGV[1] .. subject, root)
  if not stored or string.match(stored, '^(%d+):') ~= since then
    redis.call('HSET', ARGV[1] .. subject, root, since .. '::0')
    redis.call('PERSIST', ARGV[1] .. subject)
    redis.call('PERSIST', ARGV[2] .. subject)
    ask(plan, subject, 'first')
    new = new + 1
  end
end
return new
