--[[
  Renews a lease with its token, also after it has expired, as long as no other process has acquired it since.

  KEYS
    lease  string  fencing token of the holder
    fence  string  the newest fencing token

  ARGV
    token    text    token of the caller
    leaseMs  number  length of the lease, ms

  returns flag
    False where another process has acquired it.
]]
-- @include fence
if isFenced(KEYS.lease, KEYS.fence, ARGV.token) then return 0 end
redis.call('SET', KEYS.lease, ARGV.token, 'PX', ARGV.leaseMs)
return 1
