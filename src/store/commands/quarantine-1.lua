--[[
  Quarantines an entry of the log that could not be read.

  KEYS
    quarantine  zset  the entry as it stood -> its time, ms

  ARGV
    entry  json    the entry, JSON array [id, field, value, ...]
    atMs   text    its time, ms
    most   number  how many are stored: the oldest go

  returns flag
    False when it was quarantined before.
]]
local added = redis.call('ZADD', KEYS.quarantine, 'NX', ARGV.atMs, ARGV.entry)
redis.call('ZREMRANGEBYRANK', KEYS.quarantine, 0, -tonumber(ARGV.most) - 1)
return added
