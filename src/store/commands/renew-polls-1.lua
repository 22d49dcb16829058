--[[
  Says that a process is there, and renews the leases of what it has taken.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    process  text  process id
    atMs     text?  the plan's time, ms; none for that of Redis
    polls    ...(member text, token text)  what it works on

  returns number
    How many leases were renewed.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
beginGrace(plan)
redis.call('HSET', plan.key, 'last', text(plan.now), 'offset', text(plan.offset), 'graceUntil', text(plan.graceUntil))
redis.call('ZADD', plan.key .. ':processes', text(plan.now), ARGV.process)
redis.call('ZREMRANGEBYSCORE', plan.key .. ':processes', '-inf', text(plan.now - 3600000))
local renewed = 0
for i = 1, #ARGV.polls do
  local claim = readClaim(redis.call('HGET', plan.key .. ':claims', ARGV.polls[i].member))
  if claim and claim.token == ARGV.polls[i].token then
    renewed = renewed + redis.call('ZADD', plan.key .. ':leases', 'XX', 'CH', text(plan.now + PLAN.LEASE), ARGV.polls[i].member)
  end
end
return renewed
