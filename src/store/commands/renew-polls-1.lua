--[[
  Says that a process is there, and renews the leases of what it has taken.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)

  ARGV[1] process id
  ARGV[2] the plan's time, ms; "" for that of Redis
  ARGV[3..] member, token, … of what it works on

  Returns how many leases were renewed.
]]
-- @include plan
local plan = openPlan(KEYS[1], ARGV[2])
beginGrace(plan)
redis.call('HSET', plan.key, 'last', text(plan.now), 'offset', text(plan.offset), 'graceUntil', text(plan.graceUntil))
redis.call('ZADD', plan.key .. ':processes', text(plan.now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', plan.key .. ':processes', '-inf', text(plan.now - 3600000))
local renewed = 0
for i = 3, #ARGV, 2 do
  local claim = readClaim(redis.call('HGET', plan.key .. ':claims', ARGV[i]))
  if claim and claim.token == ARGV[i + 1] then
    renewed = renewed + redis.call('ZADD', plan.key .. ':leases', 'XX', 'CH', text(plan.now + PLAN.LEASE), ARGV[i])
  end
end
return renewed
