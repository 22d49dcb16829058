--[[
  Has asked anew what ended as not checked because its chain had left the config, a bounded part of it at a time.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    most    number   how many of each chain at most
    chains  ...text  the chains that are back

  returns number
    How many are requested anew.
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
