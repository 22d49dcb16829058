--[[
  Has members of a plan looked at as soon as the budget allows, also those whose tracking had ended.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)

  ARGV[1] the plan's time, ms; "" for that of Redis
  ARGV[2] prefix of keys that remember who was requested; "" to ask in any case
  ARGV[3] for how long they remember, ms: within it the same member is not requested again
  ARGV[4..] members

  Returns how many were requested.
]]
-- @include plan
local plan = openPlan(KEYS[1], ARGV[1])
local asked = 0
for i = 4, #ARGV do
  if ARGV[2] == '' or redis.call('SET', ARGV[2] .. ARGV[i], '1', 'NX', 'PX', ARGV[3]) then
    if ask(plan, ARGV[i], 'asked') then asked = asked + 1 end
  end
end
return asked
