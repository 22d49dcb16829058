--[[
  Reopens checks that ended as not checked because their chain was removed from the config, a bounded part of them at a time.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    most    number   limit of checks of each chain
    chains  ...text  chains that are in the config again

  returns number
    Number of reopened checks.
]]
-- @include check
local base, reopened = KEYS.checks, 0
for index = 1, #ARGV.chains do
  local left = base .. ':left:' .. ARGV.chains[index]
  for _, id in ipairs(redis.call('SRANDMEMBER', left, ARGV.most)) do
    redis.call('SREM', left, id)
    reopenCheck(base, id)
    reopened = reopened + 1
  end
end
return reopened
