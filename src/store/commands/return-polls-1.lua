--[[
  Ends the leases of the claims of processes that are gone. The next claim-polls of any process returns them to the plan.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    atMs       text?  time of the plan, ms; none for Redis time
    processes  ...text

  returns number
    Number of claims.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
local isGone = {}
for index = 1, #ARGV.processes do isGone[ARGV.processes[index]] = true end
local claims = redis.call('HGETALL', plan.key .. ':claims')
local count = 0
for index = 1, #claims, 2 do
  local claim = readClaim(claims[index + 1])
  if claim and isGone[claim.process] then
    claim.process = PLAN.GONE
    redis.call('HSET', plan.key .. ':claims', claims[index], writeClaim(claim))
    redis.call('ZADD', plan.key .. ':leases', 'XX', text(plan.now), claims[index])
    count = count + 1
  end
end
return count
