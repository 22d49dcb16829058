--[[
  Another slot of the budget for a poll that missed its own.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] endpointGroup    hash    state of the endpoint group (include/endpoint-group.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis

  Returns the ms to the slot.
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS[1], ARGV[1])
local endpointGroup = openEndpointGroup(KEYS[2], plan)
return text(slotAnew(plan, slotStep(plan, endpointGroup.pace)) - plan.now)
