--[[
  Tells the operator that a receiver loses events: once until its cursor moves again.

  KEYS[1] receiver   hash    state of the receiver: see store/receivers.ts
  KEYS[2] events     stream  the event log

  ARGV[1] subject id of the receiver
  ARGV[2] the receiver's cursor
  ARGV[3] event JSON  (with %SEQ%, %ID%, %FROM% to be filled in)

  Returns 1 when the event was appended, 0 when it was told before.
]]
if redis.call('HGET', KEYS[1], 'dropped') == ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'dropped', ARGV[2])
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
local event = string.gsub(ARGV[3], '%%SEQ%%', sequence)
event = string.gsub(event, '%%ID%%', 'evt_' .. redis.sha1hex(ARGV[1] .. '|' .. sequence .. '|events_dropped'))
event = string.gsub(event, '%%FROM%%', redis.call('HGET', KEYS[1], 'told') or 'ok')
redis.call('XADD', KEYS[2], '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'event', event, 'roots', '[]')
return 1
