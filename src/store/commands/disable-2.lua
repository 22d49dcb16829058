--[[
  Disables a receiver because its operator says so, with the operator's event, in one step.

  KEYS[1] receiver   hash    state of the receiver: see store/receivers.ts
  KEYS[2] events     stream  the event log

  ARGV[1] subject id of the receiver
  ARGV[2] event JSON  (with %SEQ%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  Returns the state before; a receiver that is disabled stays as it is.
]]
local before = redis.call('HGET', KEYS[1], 'state') or 'ok'
if before == 'disabled' then return before end
local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
local event = string.gsub(ARGV[2], '%%SEQ%%', sequence)
event = string.gsub(event, '%%ID%%', 'evt_' .. redis.sha1hex(ARGV[1] .. '|' .. sequence .. '|disabled'))
event = string.gsub(event, '%%FROM%%', redis.call('HGET', KEYS[1], 'told') or 'ok')
event = string.gsub(event, '%%BY%%', 'operator')
local since = redis.call('HGET', KEYS[1], 'since')
event = string.gsub(event, '"%%SINCE%%"', since and string.format('%.0f', math.floor(since / 1000)) or 'null')
redis.call('XADD', KEYS[2], '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'subject', ARGV[1], 'event', event, 'roots', '[]')
redis.call('HSET', KEYS[1], 'state', 'disabled', 'told', 'disabled', 'disabledAt', nowMs, 'disabledBy', 'operator')
redis.call('HDEL', KEYS[1], 'resuming')
return before
