--[[
  Moves the version of what is stored on; only the process that holds the lease of migrations may.

  KEYS[1] schema     string  the version
  KEYS[2] lease      string  token of who migrates

  ARGV[1] token
  ARGV[2] version before; 0 for none
  ARGV[3] version after

  Returns 1, or 0 when another process has taken over.
]]
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if (redis.call('GET', KEYS[1]) or '0') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3])
return 1
