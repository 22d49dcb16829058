--[[
  Has asked anew what ended as not checked because its chain had left the config, a bounded part of it at a time.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] how many of each chain at most
  ARGV[2...] the chains that are back

  Returns how many are requested anew.
]]
-- @include check
local base, reopened = KEYS[1], 0
for index = 2, #ARGV do
  local left = base .. ':left:' .. ARGV[index]
  for _, id in ipairs(redis.call('SRANDMEMBER', left, ARGV[1])) do
    redis.call('SREM', left, id)
    reopenCheck(base, id)
    reopened = reopened + 1
  end
end
return reopened
