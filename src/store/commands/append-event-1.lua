--[[
  Appends an event that belongs to no subject: one for the operator.

  KEYS
    events  stream  the event log

  ARGV
    event  json

  returns text
    The entry's id.
]]
return redis.call('XADD', KEYS.events, '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'event', ARGV.event, 'claimKeys', '[]')
