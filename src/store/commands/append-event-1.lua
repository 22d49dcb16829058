--[[
  Appends an event that belongs to no subject: one for the operator.

  KEYS[1] events     stream  the event log

  ARGV[1] event JSON

  Returns the entry's id.
]]
return redis.call('XADD', KEYS[1], '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'event', ARGV[1], 'roots', '[]')
