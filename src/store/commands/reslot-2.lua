--[[
  Assigns another slot of the budget to a poll that missed its own.

  KEYS
    plan           hash  clock of the plan (include/plan.lua)
    endpointGroup  hash  state of the endpoint group (include/endpoint-group.lua)

  ARGV
    atMs  text?  time of the plan, ms; none for Redis time

  returns number
    Ms to the slot.
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS.plan, ARGV.atMs)
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
return text(slotAnew(plan, slotStep(plan, endpointGroup.pace)) - plan.now)
