--[[
  Removes members from a plan. Their subjects are polled elsewhere from now on: their counts and claims stay.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    members  ...text

  returns number
    Number of removed members.
]]
-- @include plan
local plan = { key = KEYS.plan }
for i = 1, #ARGV.members do removeMember(plan, ARGV.members[i]) end
return #ARGV.members
