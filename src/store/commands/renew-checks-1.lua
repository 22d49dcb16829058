--[[
  Keeps claims of checks for as long as they are worked on. A lease that ends later stays: its check was claimed again and
  again.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] length of the lease, ms
  ARGV[2...] id of a check, and the token under which it was claimed

  Returns the ids whose claims are lost.
]]
-- @include check
local base, lost = KEYS[1], {}
local untilMs = checkText(checkNow() + tonumber(ARGV[1]))
for index = 2, #ARGV, 2 do
  local id = ARGV[index]
  local claim, chain = unpack(redis.call('HMGET', base .. ':of:' .. id, 'claim', 'chain'))
  if claim == ARGV[index + 1] and chain then
    redis.call('ZADD', base .. ':due:' .. chain, 'XX', 'GT', untilMs, id)
  else
    lost[#lost + 1] = id
  end
end
return lost
