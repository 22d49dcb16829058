--[[
  Acquires or renews a lease.

  KEYS
    lease  string  fencing token of the holder
    fence  string  the newest fencing token

  ARGV
    token    text    token that the caller holds; "" for none
    leaseMs  number  length of the lease, ms
    process  text    process of the caller, which a new token names (free-leases-4.lua); "" for none

  returns text
    The caller's token; "" when another process holds the lease.
]]
local holder = redis.call('GET', KEYS.lease)
if holder and holder == ARGV.token then
  redis.call('PEXPIRE', KEYS.lease, ARGV.leaseMs)
  return holder
end
-- A lease from a clock far ahead would outlive its holder by as much: no process waits for longer than a lease.
if holder then
  local leftMs = redis.call('PTTL', KEYS.lease)
  if leftMs < 0 or leftMs > tonumber(ARGV.leaseMs) then redis.call('PEXPIRE', KEYS.lease, ARGV.leaseMs) end
  return ''
end
local token = string.format('%.0f', redis.call('INCR', KEYS.fence))
if ARGV.process ~= '' then token = token .. ' ' .. ARGV.process end
redis.call('SET', KEYS.lease, token, 'PX', ARGV.leaseMs)
return token
