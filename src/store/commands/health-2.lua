--[[
  Takes the outcome of one request into the state of the upstream's surface, and appends the operator's event when the
  state moves, in one step.

  KEYS[1] health     hash    state: ok | unreachable | unauthorized; failures; since; seconds sequence
  KEYS[2] events     stream  the event log

  ARGV[1] outcome: ok | unauthorized | unreachable
  ARGV[2] failures in a row that make the surface unreachable
  ARGV[3] milliseconds that the failures must have lasted
  ARGV[4] subject id of the surface
  ARGV[5] event JSON for the move to unreachable  (with %SEQ%, %ID%, %FROM% to be filled in)
  ARGV[6] event JSON for the move to unauthorized
  ARGV[7] event JSON for the recovery from unreachable
  ARGV[8] event JSON for the recovery from unauthorized

  Returns { state before, state after, entry or "" }.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local before = redis.call('HGET', KEYS[1], 'state') or 'ok'
local after = before
if ARGV[1] == 'ok' then
  if before == 'ok' and redis.call('HGET', KEYS[1], 'failures') == false then return { 'ok', 'ok', '' } end
  redis.call('HDEL', KEYS[1], 'failures', 'since', 'probe')
  after = 'ok'
elseif ARGV[1] == 'unauthorized' then
  -- An answer that refuses the key shows that the service is there.
  redis.call('HDEL', KEYS[1], 'failures', 'since')
  after = 'unauthorized'
else
  local failures = redis.call('HINCRBY', KEYS[1], 'failures', 1)
  redis.call('HSETNX', KEYS[1], 'since', string.format('%.0f', nowMs))
  local sinceMs = tonumber(redis.call('HGET', KEYS[1], 'since'))
  if before == 'ok' and failures >= tonumber(ARGV[2]) and nowMs - sinceMs >= tonumber(ARGV[3]) then
    after = 'unreachable'
  end
end
if after == before then return { before, after, '' } end

redis.call('HSET', KEYS[1], 'state', after)

local function append(template, from)
  local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
  local id = 'evt_' .. redis.sha1hex(ARGV[4] .. '|' .. sequence .. '|' .. after)
  local event = string.gsub(template, '%%SEQ%%', sequence)
  event = string.gsub(event, '%%ID%%', id)
  event = string.gsub(event, '%%FROM%%', from)
  return redis.call('XADD', KEYS[2], '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'subject', ARGV[4], 'event', event, 'roots', '[]')
end

-- An answer that refuses the key ends an outage: who was told of it has to hear that it is over.
local entry
if before == 'unreachable' then entry = append(ARGV[7], before) end
if after == 'unauthorized' then
  entry = append(ARGV[6], before == 'unreachable' and 'reachable' or before)
elseif after == 'unreachable' then
  entry = append(ARGV[5], before)
elseif before == 'unauthorized' then
  entry = append(ARGV[8], before)
end
return { before, after, entry }
