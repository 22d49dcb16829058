--[[
  Reports to the operator that cursors of an endpoint group expire before they are used, once until a larger rate is needed.

  KEYS
    endpointGroup  hash    state of the endpoint group: its events are counted there
    events         stream  the event log

  ARGV
    subject  text    subject id of the endpoint group
    rate     number  rate that would suffice, requests per second
    event    text    event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  returns flag
    False when the event was appended before.
]]
-- @include operator-event
local STORED_MS = 86400000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local rate, at = string.match(redis.call('HGET', KEYS.endpointGroup, 'cursorRate') or '', '^(%S+) (%d+)$')
local isRecent = at and tonumber(at) <= now and now - tonumber(at) < STORED_MS
if isRecent and tonumber(rate) >= tonumber(ARGV.rate) then return 0 end
redis.call('HSET', KEYS.endpointGroup, 'cursorRate', ARGV.rate .. ' ' .. string.format('%.0f', now))
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS.endpointGroup, 'sequence', 1))
appendOperatorEvent(
  KEYS.events, ARGV.event,
  { subject = ARGV.subject, sequence = sequence, word = 'cursor_expired', from = redis.call('HGET', KEYS.endpointGroup, 'state') or 'ok' }
)
return 1
