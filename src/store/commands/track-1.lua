--[[
  Begins to track members of a plan that are not tracked.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    atMs           text?    the plan's time, ms; none for that of Redis
    spreadSeconds  number   how far their first polls are spread, virtual seconds
    restMs         number   ms that they rest before
    members        ...text

  returns number
    How many were new.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
local count = #ARGV.members
local latest = plan.now + tonumber(ARGV.restMs) + PLAN.LATEST_ANEW
local new = 0
for i = 1, count do
  if track(plan, ARGV.members[i], newItem('fair', plan.v + tonumber(ARGV.spreadSeconds) * i / count, latest), tonumber(ARGV.restMs)) then new = new + 1 end
end
return new
