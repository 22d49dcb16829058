--[[
  Records one attempt of a delivery, or of several that were sent in one message. In the same step it may end them, and move
  the receiver's pace with the operator's event.

  KEYS
    receiver  hash    state of the receiver: see include/pace.lua
    pending   zset    the receiver's open deliveries
    dead      zset    the receiver's dead letters
    queue     keys    base of the receiver's queue: see include/queue.lua
    events    stream  the event log
    wakes     stream  receivers with something to do
    clock     hash    the confirmed time: see store/confirmed-time.ts

  ARGV
    process         text?    process that made it; none for the end of a delivery that was not sent
    receiver        text
    attempt         json
    outcome         "pending" | "delivered" | "dead"  outcome of the deliveries after the attempt
    nextAtMs        number?  time at which they are tried again, ms; none for no change
    counts          flag     true when it uses up one of their attempts
    answer          text     whole answer; the attempt has its beginning
    restMs          number?  wait that the receiver requested, ms
    disableAfterMs  number?  span of nothing but failures that disables the receiver, ms; none when the attempt does
                             not count for that
    subject         text     subject id of the receiver
    failing         text     event JSON for the move to failing (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)
    disabled        text     event JSON for the move to disabled
    recovered       text     event JSON for the recovery
    mostAttempts    number   limit of stored attempts
    deliveryPrefix  text     prefix of the receiver's delivery keys
    replayPrefix    text     prefix of replay keys
    ids             ...text  ids of the deliveries, the one that led first

  returns
    outcome   "pending" | "delivered" | "dead"  stored outcome
    moved     "failing" | "disabled" | "recovered" | ""  move that the operator is notified of
    released  number  number of released deliveries

  A delivered delivery stays delivered. An attempt is not recorded where the fact is gone, nor a failure by a process that has
  lost the delivery. No delivery of a disabled receiver dies: it waits.
]]
-- @include operator-event
-- @include confirmed-time
-- @include pace
-- @include queue
local queue = openQueue(KEYS.queue)
local prefix = ARGV.deliveryPrefix
local attempt = cjson.decode(ARGV.attempt)
local pace = {
  receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject, now = timeMs(), certain = certainMs(KEYS.clock),
}
local nowMs = whole(pace.now)
local isDelivered = ARGV.outcome == 'delivered'

local leader = ARGV.ids[1]
local holder, claimedAt = holderOf(queue, leader)
local before = redis.call('HGET', prefix .. leader, 'outcome')
if not before then
  -- In an emptied Redis, a recorded end would block the event, when it is reported anew, from its receiver.
  redis.call('HDEL', queue.sending, leader)
  -- A delivered event is not reported as dropped.
  if isDelivered then redis.call('ZREM', KEYS.pending, leader) end
  return { ARGV.outcome, '', '0' }
end
if ARGV.process ~= '' and holder ~= ARGV.process and not isDelivered then return { before, '', '0' } end

local isMember, isBad = {}, false
local lastSuccessAt = pastOf(KEYS.receiver, 'lastSuccessAt', pace.now) or 0
for index = 1, #ARGV.ids do
  local id = ARGV.ids[index]
  local key = prefix .. id
  isMember[id] = true
  if redis.call('EXISTS', key) == 1 then
    add(key, 'tries', 1)
    if ARGV.counts == '' then add(key, 'earlierTries', 1) end
    local stored = redis.call('HGET', key, 'attempts')
    if stored or not isDelivered then
      local read, attempts = pcall(cjson.decode, stored or '[]')
      if not read or type(attempts) ~= 'table' then attempts = {} end
      attempts[#attempts + 1] = attempt
      while #attempts > tonumber(ARGV.mostAttempts) do table.remove(attempts, 1) end
      redis.call('HSET', key, 'attempts', cjson.encode(attempts), 'answer', ARGV.answer)
    end
    if not isDelivered then
      local failedAt = numberOf(key, 'failedAt')
      if not failedAt then redis.call('HSET', key, 'failedAt', nowMs) end
      if (failedAt or pace.now) < lastSuccessAt then isBad = true end
      if ARGV.nextAtMs ~= '' then redis.call('HSET', key, 'nextAt', ARGV.nextAtMs) end
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
  redis.call('ZREM', KEYS.pending, id)
  local replay = redis.call('HGET', key, 'replay')
  if replay and stood == 'pending' and redis.call('EXISTS', ARGV.replayPrefix .. replay) == 1 then
    add(ARGV.replayPrefix .. replay, outcome, 1)
  end
  local next = redis.call('HGET', key, 'next')
  if next and not isMember[next] and redis.call('HGET', prefix .. next, 'outcome') == 'pending' then
    if not isQueued(queue, next) then
      setDue(queue, next, prefix .. next)
      released = released + 1
    end
  end
  if outcome == 'dead' then
    redis.call('ZADD', KEYS.dead, whole(stampMs(KEYS.clock)), id)
    -- A delivery that is opened again joins a batch anew.
    redis.call('HDEL', key, 'batch', 'nextAt')
  else
    -- An ended delivery stores little: its event, its receiver, and its time.
    redis.call('ZREM', KEYS.dead, id)
    redis.call('HSET', key, 'deliveredAt', nowMs)
    redis.call('HDEL', key, 'turn', 'after', 'next', 'nextAt', 'failedAt', 'answer', 'earlierTries')
  end
end

local word, forward = '', false
if isDelivered then
  for index = 1, #ARGV.ids do finish(ARGV.ids[index], 'delivered') end
end
if ARGV.disableAfterMs ~= '' then
  if isDelivered then
    word, forward = paceSucceeded(pace, claimedAt or 0, redis.call('ZCARD', KEYS.pending) == 0, ARGV.recovered)
  else
    word, forward = paceFailed(pace, {
      id = leader,
      reason = attempt.reason,
      restMs = tonumber(ARGV.restMs),
      isGone = attempt.httpStatus == 410,
      isBad = isBad,
      spanMs = tonumber(ARGV.disableAfterMs),
    }, { failing = ARGV.failing, disabled = ARGV.disabled })
  end
end
local state = stateOf(KEYS.receiver)
local outcome = ARGV.outcome
if outcome == 'dead' and ARGV.disableAfterMs ~= '' and isHeld(state) then outcome = 'pending' end
if outcome == 'dead' then
  for index = 1, #ARGV.ids do finish(ARGV.ids[index], 'dead') end
elseif outcome == 'pending' then
  takeOff(queue, leader)
  local key = prefix .. leader
  local nextAt = tonumber(redis.call('HGET', key, 'nextAt') or '')
  -- While the whole receiver waits, its pace decides the time of the next try.
  if state == 'ok' and nextAt and nextAt > pace.now then redis.call('ZADD', queue.later, whole(nextAt), leader)
  else setDue(queue, leader, key) end
end
if forward then
  -- The number of open deliveries is bounded (see store/deliveries.ts), and so is this.
  bringForward(queue, queue.later, '+inf', prefix, 5000)
  wake(KEYS.wakes, ARGV.receiver, ARGV.process)
end
return { redis.call('HGET', prefix .. leader, 'outcome') or outcome, word, whole(released) }
