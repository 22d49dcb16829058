--[[
  Begins to track members of a plan that are not tracked.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis
  ARGV[2] how far their first polls are spread, virtual seconds
  ARGV[3] ms that they rest before
  ARGV[4..] members

  Returns how many were new.
]]
-- @include plan
local plan = openPlan(KEYS[1], ARGV[1])
local count = #ARGV - 3
local latest = plan.now + tonumber(ARGV[3]) + PLAN.LATEST_ANEW
local new = 0
for i = 1, count do
  if track(plan, ARGV[i + 3], newItem('fair', plan.v + tonumber(ARGV[2]) * i / count, latest), tonumber(ARGV[3])) then new = new + 1 end
end
return new
