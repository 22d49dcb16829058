--[[
  Notes one attempt of a delivery, or of several that were sent in one message, and with it perhaps their end and a move
  of the receiver's pace, with the operator's event, in one step.

  KEYS[1] receiver   hash    state of the receiver: see include/pace.lua
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] dead       zset    the receiver's dead letters
  KEYS[4] queue              base of the receiver's queue: see include/queue.lua
  KEYS[5] events     stream  the event log
  KEYS[6] wakes      stream  receivers with something to do

  ARGV[1] process that made it; "" for the end of a delivery that was not sent
  ARGV[2] receiver
  ARGV[3] the attempt, JSON
  ARGV[4] outcome of the deliveries after it: pending | delivered | dead
  ARGV[5] when they are tried again, ms; "" when it stays what it was
  ARGV[6] "1" when it uses up one of their attempts, else ""
  ARGV[7] the whole answer, of which the attempt has the beginning
  ARGV[8] wait that the receiver requested, ms; "" for none
  ARGV[9] span of nothing but failures that disables the receiver, ms; "" when the attempt says nothing about it
  ARGV[10] subject id of the receiver
  ARGV[11] event JSON for the move to failing  (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)
  ARGV[12] event JSON for the move to disabled
  ARGV[13] event JSON for the recovery
  ARGV[14] number of attempts that is stored
  ARGV[15] prefix of the receiver's delivery keys
  ARGV[16] prefix of replay keys
  ARGV[17...] ids of the deliveries, the one that led first

  Returns { outcome that stands, word of what the operator is notified or "", how many deliveries it released }. A delivery
  that is delivered stays so; one whose fact is gone is not noted, nor a failure by a process that the delivery was taken
  from. No delivery of a disabled receiver dies: it waits.
]]
-- @include operator-event
-- @include confirmed-time
-- @include pace
-- @include queue
local queue = openQueue(KEYS[4])
local prefix = ARGV[15]
local attempt = cjson.decode(ARGV[3])
local pace = { receiver = KEYS[1], events = KEYS[5], subject = ARGV[10], now = timeMs() }
local nowMs = whole(pace.now)
local isDelivered = ARGV[4] == 'delivered'

local leader = ARGV[17]
local holder, claimedAt = holderOf(queue, leader)
local before = redis.call('HGET', prefix .. leader, 'outcome')
if not before then
  -- Noted now, the end of a delivery in a Redis that was emptied would keep the event, reported anew, from its receiver.
  redis.call('HDEL', queue.sending, leader)
  -- What was delivered is not reported as dropped.
  if isDelivered then redis.call('ZREM', KEYS[2], leader) end
  return { ARGV[4], '', '0' }
end
if ARGV[1] ~= '' and holder ~= ARGV[1] and not isDelivered then return { before, '', '0' } end

local isMember, isBad = {}, false
local lastSuccessAt = pastOf(KEYS[1], 'lastSuccessAt', pace.now) or 0
for index = 17, #ARGV do
  local id = ARGV[index]
  local key = prefix .. id
  isMember[id] = true
  if redis.call('EXISTS', key) == 1 then
    add(key, 'tries', 1)
    if ARGV[6] == '' then add(key, 'earlierTries', 1) end
    local kept = redis.call('HGET', key, 'attempts')
    if kept or not isDelivered then
      local read, attempts = pcall(cjson.decode, kept or '[]')
      if not read or type(attempts) ~= 'table' then attempts = {} end
      attempts[#attempts + 1] = attempt
      while #attempts > tonumber(ARGV[14]) do table.remove(attempts, 1) end
      redis.call('HSET', key, 'attempts', cjson.encode(attempts), 'answer', ARGV[7])
    end
    if not isDelivered then
      local failedAt = numberOf(key, 'failedAt')
      if not failedAt then redis.call('HSET', key, 'failedAt', nowMs) end
      if (failedAt or pace.now) < lastSuccessAt then isBad = true end
      if ARGV[5] ~= '' then redis.call('HSET', key, 'nextAt', ARGV[5]) end
    end
  end
end

local released = 0
-- Ends a delivery, and queues the one that waited for it.
local function finish(id, outcome)
  local key = prefix .. id
  local stood = redis.call('HGET', key, 'outcome')
  if not stood or stood == 'delivered' then return end
  takeOff(queue, id)
  redis.call('HSET', key, 'outcome', outcome)
  redis.call('ZREM', KEYS[2], id)
  local replay = redis.call('HGET', key, 'replay')
  if replay and stood == 'pending' and redis.call('EXISTS', ARGV[16] .. replay) == 1 then
    add(ARGV[16] .. replay, outcome, 1)
  end
  local next = redis.call('HGET', key, 'next')
  if next and not isMember[next] and redis.call('HGET', prefix .. next, 'outcome') == 'pending' then
    if not isQueued(queue, next) then
      setDue(queue, next, prefix .. next)
      released = released + 1
    end
  end
  if outcome == 'dead' then
    local clock = string.sub(KEYS[5], 1, #KEYS[5] - #':events') .. ':clock'
    redis.call('ZADD', KEYS[3], whole(stampMs(clock)), id)
    -- Opened again, it joins a batch anew.
    redis.call('HDEL', key, 'batch', 'nextAt')
  else
    -- What is over needs little: which event it was, to whom it led, and when.
    redis.call('ZREM', KEYS[3], id)
    redis.call('HSET', key, 'deliveredAt', nowMs)
    redis.call('HDEL', key, 'turn', 'after', 'next', 'nextAt', 'failedAt', 'answer', 'earlierTries')
  end
end

local word, forward = '', false
if isDelivered then
  for index = 17, #ARGV do finish(ARGV[index], 'delivered') end
end
if ARGV[9] ~= '' then
  if isDelivered then
    word, forward = paceSucceeded(pace, claimedAt or 0, redis.call('ZCARD', KEYS[2]) == 0, ARGV[13])
  else
    word, forward = paceFailed(pace, {
      id = leader,
      reason = attempt.reason,
      restMs = tonumber(ARGV[8]),
      isGone = attempt.httpStatus == 410,
      isBad = isBad,
      spanMs = tonumber(ARGV[9]),
    }, { failing = ARGV[11], disabled = ARGV[12] })
  end
end
local state = stateOf(KEYS[1])
local outcome = ARGV[4]
if outcome == 'dead' and ARGV[9] ~= '' and isHeld(state) then outcome = 'pending' end
if outcome == 'dead' then
  for index = 17, #ARGV do finish(ARGV[index], 'dead') end
elseif outcome == 'pending' then
  takeOff(queue, leader)
  local key = prefix .. leader
  local nextAt = tonumber(redis.call('HGET', key, 'nextAt') or '')
  -- While the receiver as a whole is waited for, that is what decides when it is tried.
  if state == 'ok' and nextAt and nextAt > pace.now then redis.call('ZADD', queue.later, whole(nextAt), leader)
  else setDue(queue, leader, key) end
end
if forward then
  -- What is open is bounded (see store/deliveries.ts), and so is this.
  bringForward(queue, queue.later, '+inf', prefix, 5000)
  wake(KEYS[6], ARGV[2], ARGV[1])
end
return { redis.call('HGET', prefix .. leader, 'outcome') or outcome, word, whole(released) }
