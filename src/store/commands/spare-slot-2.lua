--[[
  A slot of the budget for a request that is no poll.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] endpointGroup    hash    state of the endpoint group (see include/endpoint-group.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis

  Returns the ms to the slot; "" where the endpoint group is paused, probed or down: then there is none to spare.
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS[1], ARGV[1])
local endpointGroup = openEndpointGroup(KEYS[2], plan)
local gate = endpointGroupGate(endpointGroup, plan)
if not gate.open or gate.probe then return '' end
return text(slotAnew(plan, slotStep(plan, endpointGroup.pace)) - plan.now)
