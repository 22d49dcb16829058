--[[
  Assigns a slot of the budget to a request that is no poll.

  KEYS
    plan           hash  clock of the plan (include/plan.lua)
    endpointGroup  hash  state of the endpoint group (see include/endpoint-group.lua)

  ARGV
    atMs  text?  time of the plan, ms; none for Redis time

  returns number?
    Ms to the slot; none where the endpoint group is paused, probed or down.
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS.plan, ARGV.atMs)
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
local gate = endpointGroupGate(endpointGroup, plan)
if not gate.open or gate.probe then return '' end
return text(slotAnew(plan, slotStep(plan, endpointGroup.pace)) - plan.now)
