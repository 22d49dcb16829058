--[[
  Records that a process is alive, and renews the leases of its started claims.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    process  text  process id
    atMs     text?  time of the plan, ms; none for Redis time
    polls    ...(member text, token text)  claims that it works on

  returns number
    Number of renewed leases.
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
    renewed = renewed + redis.call('ZADD', plan.key .. ':leases', 'XX', 'CH', wholeMs(plan.now + PLAN.LEASE), ARGV.polls[i].member)
  end
end
return renewed
