--[[
  Quarantines an entry of the log that could not be read.

  KEYS[1] quarantine  zset    the entry as it stood -> its time, ms

  ARGV[1] the entry, JSON array [id, field, value, ...]
  ARGV[2] its time, ms
  ARGV[3] how many are stored: the oldest go

  Returns 1, or 0 when it was quarantined before.
]]
local added = redis.call('ZADD', KEYS[1], 'NX', ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -tonumber(ARGV[3]) - 1)
return added
