--[[
  Moves an entry that was quarantined to the end of the log, in one step.

  KEYS[1] quarantine  zset    the entry as it stood -> its time, ms
  KEYS[2] events     stream  the event log

  ARGV[1] the entry, JSON array [id, field, value, ...]
  ARGV[2...] its fields and values

  Returns the new entry's id; "" when another was faster.
]]
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return '' end
return redis.call('XADD', KEYS[2], '*', unpack(ARGV, 2))
