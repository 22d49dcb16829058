--[[
  Moves an entry that was quarantined to the end of the log, in one step.

  KEYS
    quarantine  zset    entry as it was in the log -> its time, ms
    events      stream  the event log

  ARGV
    entry   json     the entry, JSON array [id, field, value, ...]
    fields  ...text  its fields and values

  returns text
    The new entry's id; "" when another process did so first.
]]
if redis.call('ZREM', KEYS.quarantine, ARGV.entry) == 0 then return '' end
return redis.call('XADD', KEYS.events, '*', unpack(ARGV.fields))
