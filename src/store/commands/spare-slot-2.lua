--[[
  A slot of the budget for a request that is no look.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] surface    hash    state of the surface (see include/surface.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis

  Returns the ms to the slot; "" where the surface is paused, probed or down: then there is none to spare.
]]
-- @include plan
-- @include surface
local plan = openPlan(KEYS[1], ARGV[1])
local surface = openSurface(KEYS[2], plan)
local gate = surfaceGate(surface, plan)
if not gate.open or gate.probe then return '' end
return text(slotAnew(plan, slotStep(plan, surface.pace)) - plan.now)
