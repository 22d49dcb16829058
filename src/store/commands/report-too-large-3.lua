--[[
  Reports to the operator, once, a record that is too large to read.

  KEYS
    endpointGroup  hash    state of the endpoint group: its events are counted there
    events         stream  the event log
    tooLarge       zset    record -> time at which it was last found too large, ms

  ARGV
    subject  text  subject id of the endpoint group
    record   text  id of the record, or its wallet
    event    text  event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  returns flag
    False when the event was appended before.
]]
-- @include operator-event
local STORED_MS, MOST = 30 * 86400000, 10000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS.tooLarge, '-inf', string.format('%.0f', now - STORED_MS))
local isReported = redis.call('ZSCORE', KEYS.tooLarge, ARGV.record)
redis.call('ZADD', KEYS.tooLarge, string.format('%.0f', now), ARGV.record)
redis.call('ZREMRANGEBYRANK', KEYS.tooLarge, 0, -MOST - 1)
if isReported then return 0 end
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS.endpointGroup, 'sequence', 1))
appendOperatorEvent(
  KEYS.events, ARGV.event,
  { subject = ARGV.subject, sequence = sequence, word = 'record_too_large', from = redis.call('HGET', KEYS.endpointGroup, 'state') or 'ok' }
)
return 1
