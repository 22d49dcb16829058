--[[
  Takes or keeps the lease of the relay.

  KEYS[1] lease      string  fencing token of the holder
  KEYS[2] fence      string  the newest fencing token

  ARGV[1] the token that the caller holds; "" when it holds none
  ARGV[2] length of the lease, ms

  Returns the caller's token, or "" when another process holds the lease.
]]
local holder = redis.call('GET', KEYS[1])
if holder and holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return holder
end
-- One that was taken under a clock far ahead would outlive its holder by as much: nobody waits for longer than a lease.
if holder then
  local leftMs = redis.call('PTTL', KEYS[1])
  if leftMs < 0 or leftMs > tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
  return ''
end
local token = string.format('%.0f', redis.call('INCR', KEYS[2]))
redis.call('SET', KEYS[1], token, 'PX', ARGV[2])
return token
