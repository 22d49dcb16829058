--[[
  Renews claims of checks that are worked on. A lease that ends later stays: its check was claimed again and again.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    leaseMs  number                    length of the lease, ms
    claims   ...(id text, token text)  checks, and the tokens of their claims

  returns list of text
    The ids whose claims are lost.
]]
-- @include check
local base, lost = KEYS.checks, {}
local untilMs = checkText(checkNow() + tonumber(ARGV.leaseMs))
for index = 1, #ARGV.claims do
  local id = ARGV.claims[index].id
  local claim, chain = unpack(redis.call('HMGET', base .. ':of:' .. id, 'claim', 'chain'))
  if claim == ARGV.claims[index].token and chain then
    redis.call('ZADD', base .. ':due:' .. chain, 'XX', 'GT', untilMs, id)
  else
    lost[#lost + 1] = id
  end
end
return lost
