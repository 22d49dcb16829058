--[[
  Quarantines an unreadable entry of the log.

  KEYS
    quarantine  zset  entry as it was in the log -> its time, ms

  ARGV
    entry  json    the entry, JSON array [id, field, value, ...]
    atMs   text    its time, ms
    most   number  limit of stored entries: beyond it the oldest are removed

  returns flag
    False when it was quarantined before.
]]
local added = redis.call('ZADD', KEYS.quarantine, 'NX', ARGV.atMs, ARGV.entry)
redis.call('ZREMRANGEBYRANK', KEYS.quarantine, 0, -tonumber(ARGV.most) - 1)
return added
