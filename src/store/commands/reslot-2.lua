--[[
  Another slot of the budget for a look that missed its own.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] surface    hash    state of the surface (include/surface.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis

  Returns the ms to the slot.
]]
-- @include plan
-- @include surface
local plan = openPlan(KEYS[1], ARGV[1])
local surface = openSurface(KEYS[2], plan)
return text(slotAnew(plan, slotStep(plan, surface.pace)) - plan.now)
