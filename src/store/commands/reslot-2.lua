--[[
  Another slot of the budget for a poll that missed its own.

  KEYS
    plan           hash  clock of the plan (include/plan.lua)
    endpointGroup  hash  state of the endpoint group (include/endpoint-group.lua)

  ARGV
    atMs  text?  the plan's time, ms; none for that of Redis

  returns number
    The ms to the slot.
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS.plan, ARGV.atMs)
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
return text(slotAnew(plan, slotStep(plan, endpointGroup.pace)) - plan.now)
