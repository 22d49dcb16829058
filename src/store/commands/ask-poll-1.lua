--[[
  Has members of a plan looked at as soon as the budget allows, also those whose tracking had ended.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    atMs        text?    the plan's time, ms; none for that of Redis
    oncePrefix  text     prefix of keys that remember who was requested; "" to ask in any case
    withinMs    number   for how long they remember, ms: within it the same member is not requested again
    members     ...text

  returns number
    How many were requested.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
local asked = 0
for i = 1, #ARGV.members do
  if ARGV.oncePrefix == '' or redis.call('SET', ARGV.oncePrefix .. ARGV.members[i], '1', 'NX', 'PX', ARGV.withinMs) then
    if ask(plan, ARGV.members[i], 'asked') then asked = asked + 1 end
  end
end
return asked
