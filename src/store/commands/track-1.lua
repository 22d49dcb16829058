--[[
  Begins to track members of a plan; tracked ones stay as they are.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    atMs           text?    time of the plan, ms; none for Redis time
    spreadSeconds  number   spread of their first polls, virtual seconds
    restMs         number   ms for which they rest before
    members        ...text

  returns number
    Number of new members.
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
