--[[
  Notes one attempt of a delivery, or of several that were sent in one message, and with it perhaps their end and a move
  of the receiver's state, with the operator's event, in one step.

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
  ARGV[13] ids of the other deliveries of the message, JSON array
  ARGV[14] prefix of the receiver's delivery keys

  Returns { outcome that stands, word of the receiver's move or "", ids of the deliveries that this end releases... }.
  A delivery that is delivered stays so; one whose fact is gone is not noted. No delivery of a disabled receiver dies: it waits.
]]
local attempt = cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowMs = string.format('%.0f', now)

-- Notes the attempt in the fact of a delivery. Returns its outcome before, and the number of its attempts.
local function attempted(key)
  local before = redis.call('HGET', key, 'outcome')
  -- Noted now, the end of a delivery in a Redis that was emptied would keep the event, told anew, from its receiver.
  if not before then return nil, 0 end
  local attempts = cjson.decode(redis.call('HGET', key, 'attempts') or '[]')
  attempts[#attempts + 1] = attempt
  while #attempts > tonumber(ARGV[4]) do table.remove(attempts, 1) end
  local tries = redis.call('HINCRBY', key, 'tries', 1) - tonumber(redis.call('HGET', key, 'earlierTries') or '0')
  redis.call('HSET', key, 'attempts', cjson.encode(attempts))
  redis.call('PEXPIRE', key, ARGV[5])
  return before, tries
end

local deliveries, isMember = {}, {}
local tries = 0
local function take(id, key)
  local before, count = attempted(key)
  if not before then return end
  deliveries[#deliveries + 1] = { id = id, key = key, before = before }
  isMember[id] = true
  tries = math.max(tries, count)
end
take(ARGV[1], KEYS[1])
for _, id in ipairs(cjson.decode(ARGV[13])) do take(id, ARGV[14] .. id) end
if #deliveries == 0 then return { ARGV[3], '' } end

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
  redis.call('XADD', KEYS[5], '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'subject', ARGV[9], 'event', event, 'roots', '[]')
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

local result = { '', word }
local function finish(delivery)
  local key, before = delivery.key, delivery.before
  if before == 'delivered' then return before end
  local outcome = ARGV[3]
  if held and outcome == 'dead' and ARGV[7] ~= '' then outcome = 'pending' end
  redis.call('HSET', key, 'outcome', outcome)
  if outcome == 'pending' then return outcome end
  redis.call('HSET', key, 'endedAt', nowMs)
  redis.call('ZREM', KEYS[2], delivery.id)
  if outcome == 'dead' then
    redis.call('ZADD', KEYS[3], nowMs, delivery.id)
    -- Opened again, it is gathered anew.
    redis.call('HDEL', key, 'batch')
  end
  local replay = redis.call('HGET', key, 'replay')
  if replay and before == 'pending' and redis.call('EXISTS', ARGV[6] .. replay) == 1 then
    redis.call('HINCRBY', ARGV[6] .. replay, outcome, 1)
  end
  local next = redis.call('HGET', key, 'next')
  if next and not isMember[next] then result[#result + 1] = next end
  return outcome
end
for index, delivery in ipairs(deliveries) do
  local outcome = finish(delivery)
  if index == 1 then result[1] = outcome end
end
return result
