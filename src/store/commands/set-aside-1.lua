--[[
  Sets an entry of the log aside that could not be read.

  KEYS[1] set aside  zset    the entry as it stood -> its time, ms

  ARGV[1] the entry, JSON array [id, field, value, ...]
  ARGV[2] its time, ms
  ARGV[3] how many are kept: the oldest go

  Returns 1, or 0 when it was set aside before.
]]
local added = redis.call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -tonumber(ARGV[3]) - 1)
return added
