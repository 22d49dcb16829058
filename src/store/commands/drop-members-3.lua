--[[
  Removes members from a plan. Their subjects are polled elsewhere from now on: their counts and claims stay.

  KEYS
    plan   hash    clock of the plan (include/plan.lua)
    lease  string  fencing token of the process that syncs
    fence  string  the newest fencing token

  ARGV
    token    text  fencing token of the caller
    members  ...text

  returns number?
    Number of removed members; none where another process has acquired the lease.
]]
-- @include plan
-- @include fence
if isFenced(KEYS.lease, KEYS.fence, ARGV.token) then return '' end
local plan = { key = KEYS.plan }
for i = 1, #ARGV.members do removeMember(plan, ARGV.members[i]) end
return #ARGV.members
