--[[
  Notes one attempt of a delivery, and with it perhaps the end of the delivery and a move of its receiver's state, with
  the operator's event, in one step.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] dead       zset    the receiver's dead letters
  KEYS[4] receiver   hash    state of the receiver: see store/receivers.ts
  KEYS[5] events     stream  the event log

  ARGV[1] delivery id
  ARGV[2] the attempt, JSON
  ARGV[3] outcome of the delivery after it: pending | delivered | dead
  ARGV[4] number of attempts that is kept
  ARGV[5] lifetime of the fact, ms
  ARGV[6] prefix of replay keys
  ARGV[7] span of nothing but failures that disables the receiver, ms; "" when the attempt says nothing about it
  ARGV[8] failed attempts of one event that make the receiver failing, and the least that can disable it
  ARGV[9] subject id of the receiver
  ARGV[10] event JSON for the move to failing  (with %SEQ%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)
  ARGV[11] event JSON for the move to disabled
  ARGV[12] event JSON for the recovery

  Returns { outcome that stands, word of the receiver's move or "", id of the delivery that this one's end releases or "" }.
  A delivery that is delivered stays so; one whose fact is gone is not noted. No delivery of a disabled receiver dies: it waits.
]]
local attempt = cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowMs = string.format('%.0f', now)
local before = redis.call('HGET', KEYS[1], 'outcome')
-- Noted now, the end of a delivery in a Redis that was emptied would keep the event, told anew, from its receiver.
if not before then return { ARGV[3], '', '' } end
local attempts = cjson.decode(redis.call('HGET', KEYS[1], 'attempts') or '[]')
attempts[#attempts + 1] = attempt
while #attempts > tonumber(ARGV[4]) do table.remove(attempts, 1) end
local tries = redis.call('HINCRBY', KEYS[1], 'tries', 1) - tonumber(redis.call('HGET', KEYS[1], 'earlierTries') or '0')
redis.call('HSET', KEYS[1], 'attempts', cjson.encode(attempts))
redis.call('PEXPIRE', KEYS[1], ARGV[5])

local state = redis.call('HGET', KEYS[4], 'state') or 'ok'
local held = state == 'disabled' or state == 'enabling'
local threshold = tonumber(ARGV[8])

local function tell(template, word, by)
  local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[4], 'sequence', 1))
  local id = 'evt_' .. redis.sha1hex(ARGV[9] .. '|' .. sequence .. '|' .. word)
  local event = string.gsub(template, '%%SEQ%%', sequence)
  event = string.gsub(event, '%%ID%%', id)
  event = string.gsub(event, '%%FROM%%', redis.call('HGET', KEYS[4], 'told') or 'ok')
  event = string.gsub(event, '%%BY%%', by)
  local since = redis.call('HGET', KEYS[4], 'since')
  event = string.gsub(event, '"%%SINCE%%"', since and string.format('%.0f', math.floor(since / 1000)) or 'null')
  redis.call('XADD', KEYS[5], '*', 'kind', 'operator', 'subject', ARGV[9], 'event', event, 'roots', '[]')
end

local word = ''
if ARGV[7] ~= '' and attempt.outcome == 'delivered' then
  redis.call('HSET', KEYS[4], 'lastSuccessAt', nowMs)
  if not held then
    if redis.call('HEXISTS', KEYS[4], 'told') == 1 then
      word = 'recovered'
      tell(ARGV[12], word, 'success')
      redis.call('HDEL', KEYS[4], 'told')
    end
    redis.call('HDEL', KEYS[4], 'since', 'failures')
    redis.call('HSET', KEYS[4], 'state', 'ok')
  end
elseif ARGV[7] ~= '' then
  redis.call('HSET', KEYS[4], 'lastErrorAt', nowMs, 'lastError', attempt.reason)
  if not held then
    redis.call('HSETNX', KEYS[4], 'since', nowMs)
    local failures = redis.call('HINCRBY', KEYS[4], 'failures', 1)
    local lasts = now - tonumber(redis.call('HGET', KEYS[4], 'since'))
    local gone = attempt.httpStatus == 410
    if gone or (failures >= threshold and lasts >= tonumber(ARGV[7])) then
      word, held = 'disabled', true
      tell(ARGV[11], word, gone and 'gone' or 'failures')
      redis.call('HSET', KEYS[4], 'disabledAt', nowMs, 'disabledBy', gone and 'gone' or 'failures')
    elseif state == 'ok' and (tries == threshold or (tries < threshold and ARGV[3] == 'dead')) then
      word = 'failing'
      tell(ARGV[10], word, 'failures')
    end
    if word ~= '' then redis.call('HSET', KEYS[4], 'state', word, 'told', word) end
  end
end

if before == 'delivered' then return { before, word, '' } end
local outcome = ARGV[3]
if held and outcome == 'dead' and ARGV[7] ~= '' then outcome = 'pending' end
redis.call('HSET', KEYS[1], 'outcome', outcome)
if outcome == 'pending' then return { outcome, word, '' } end
redis.call('HSET', KEYS[1], 'endedAt', nowMs)
redis.call('ZREM', KEYS[2], ARGV[1])
if outcome == 'dead' then redis.call('ZADD', KEYS[3], nowMs, ARGV[1]) end
local replay = redis.call('HGET', KEYS[1], 'replay')
if replay and before == 'pending' and redis.call('EXISTS', ARGV[6] .. replay) == 1 then
  redis.call('HINCRBY', ARGV[6] .. replay, outcome, 1)
end
return { outcome, word, redis.call('HGET', KEYS[1], 'next') or '' }
