--[[
  Reports a record that is too large to be read to the operator, once.

  KEYS[1] endpointGroup    hash    state of the endpoint group: its events are counted there
  KEYS[2] events     stream  the event log
  KEYS[3] too large  zset    record -> when it was last found too large, ms

  ARGV[1] subject id of the endpoint group
  ARGV[2] the record: its id, or its wallet
  ARGV[3] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  Returns 1 when the event was appended, 0 when it was before.
]]
-- @include operator-event
local KEEP_MS, MOST = 30 * 86400000, 10000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now - KEEP_MS))
local isKnown = redis.call('ZSCORE', KEYS[3], ARGV[2])
redis.call('ZADD', KEYS[3], string.format('%.0f', now), ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -MOST - 1)
if isKnown then return 0 end
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
appendOperatorEvent(
  KEYS[2], ARGV[3],
  { subject = ARGV[1], sequence = sequence, word = 'record_too_large', from = redis.call('HGET', KEYS[1], 'state') or 'ok' }
)
return 1
