--[[
  Reports to the operator that cursors of an endpoint group expire before they are used, once until a larger rate is needed.

  KEYS[1] endpointGroup    hash    state of the endpoint group: its events are counted there
  KEYS[2] events     stream  the event log

  ARGV[1] subject id of the endpoint group
  ARGV[2] the rate that would do, requests per second
  ARGV[3] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  Returns 1 when the event was appended, 0 when it was before.
]]
-- @include operator-event
local KEEP_MS = 86400000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local rate, at = string.match(redis.call('HGET', KEYS[1], 'cursorRate') or '', '^(%S+) (%d+)$')
local isRecent = at and tonumber(at) <= now and now - tonumber(at) < KEEP_MS
if isRecent and tonumber(rate) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'cursorRate', ARGV[2] .. ' ' .. string.format('%.0f', now))
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
appendOperatorEvent(
  KEYS[2], ARGV[3],
  { subject = ARGV[1], sequence = sequence, word = 'cursor_expired', from = redis.call('HGET', KEYS[1], 'state') or 'ok' }
)
return 1
