--[[
  Requests polls of members of a plan as soon as the budget allows, also where their tracking has ended.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    atMs        text?    time of the plan, ms; none for Redis time
    oncePrefix  text     prefix of keys that mark a requested member; "" to request in any case
    withinMs    number   ms for which such a mark lasts: the member is not requested again before
    most        number   most members to request; those that only their own time can request do not count
    members     ...text

  returns number
    Number of requested members.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
local requested = 0
for i = 1, #ARGV.members do
  if requested >= tonumber(ARGV.most) then break end
  if ARGV.oncePrefix == '' or redis.call('SET', ARGV.oncePrefix .. ARGV.members[i], '1', 'NX', 'PX', ARGV.withinMs) then
    if requestPoll(plan, ARGV.members[i], 'requested') then requested = requested + 1 end
  end
end
return requested
