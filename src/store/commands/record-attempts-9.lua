--[[
  Records attempts that ended, each of a delivery or of several that were sent in one message, and claims the next deliveries for
  the process that made them. In the same step an attempt may end its deliveries, and move the receiver's pace with the
  operator's event.

  KEYS
    receiver       hash    state of the receiver: see include/pace.lua
    pending        zset    the receiver's open deliveries
    dead           zset    the receiver's dead letters
    queue          keys    base of the receiver's queue: see include/queue.lua
    events         stream  the event log
    wakes          stream  receivers with something to do
    senders        zset    process -> time until which it counts as alive, ms
    clock          hash    the confirmed time: see store/confirmed-time.ts
    subscriptions  hash    name -> definition

  ARGV
    process         text   process that claims the next deliveries
    receiver        text
    order           json?  its order: see include/claim-deliveries.lua; none where it claims nothing
    subject         text   subject id of the receiver
    recovered       text   event JSON for the recovery (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)
    mostAttempts    number  limit of stored attempts
    deliveryPrefix  text   prefix of the receiver's delivery keys
    replayPrefix    text   prefix of replay keys
    tracked         text   key of the definitions of subjects that are tracked by themselves
    ends            ...(ids text, process text?, attempt json, outcome "pending" | "delivered" | "dead", nextAtMs number?, counts flag, answer text, restMs number?, disableAfterMs number?, isLogged flag, failing text, disabled text)
                           `ids`: its deliveries, separated by spaces, the one that led first; `process` that made it, none for
                           the end of a delivery that was not sent; `outcome` of the deliveries after the attempt; `nextAtMs`:
                           time at which they are tried again, none for no change; `counts`: it uses up one of their attempts;
                           `answer`: the whole one, the attempt has its beginning; `restMs`: wait that the receiver requested;
                           `disableAfterMs`: span of nothing but failures that disables the receiver, none when the attempt
                           does not count for that; `isLogged`: the subscription keys of all its deliveries are those of their
                           entries; `failing` and `disabled`: event JSON for these moves

  returns
    nowMs          number   Redis time
    waitMs         number?  ms until more may be claimed; none when something else has to happen first
    subscriptions  hash     name -> text of the subscriptions that lead to the receiver
    recorded       list of (outcome "pending" | "delivered" | "dead", moved "failing" | "disabled" | "recovered" | "")
                            per end the stored outcome, and the move that the operator is notified of
    claimed        ...[id text, fact hash]  deliveries, and the fields of their facts

  A delivered delivery stays delivered. An attempt is not recorded where the fact is gone, nor a failure by a process that has
  lost the delivery. No delivery of a disabled receiver dies: it waits.
]]
-- @include operator-event
-- @include confirmed-time
-- @include pace
-- @include queue
-- @include delivered
-- @include definition
-- @include claim-deliveries
local queue = openQueue(KEYS.queue)
local prefix = ARGV.deliveryPrefix
local pace = { receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject, now = timeMs() }
local nowMs = whole(pace.now)
local recorded, forward = {}, false

-- Deliveries of ended attempts that are in `sending`: id -> `<process>:<ms>`.
local senders = {}
local function readSenders()
  local ids = {}
  for index = 1, #ARGV.ends do
    for id in string.gmatch(ARGV.ends[index].ids, '%S+') do ids[#ids + 1] = id end
  end
  local stored = redis.call('HMGET', queue.sending, unpack(ids))
  for index, id in ipairs(ids) do senders[id] = stored[index] or nil end
end

-- Ended deliveries that are to be removed from `sending`, and from the open ones.
local sent, closed = {}, {}
local function removeEnded()
  if #sent > 0 then redis.call('HDEL', queue.sending, unpack(sent)) end
  if #closed > 0 then redis.call('ZREM', KEYS.pending, unpack(closed)) end
  sent, closed = {}, {}
end

-- Successes in a row that the pace has not counted: their number, the latest start, and the entry to report a move in.
local successes = { count = 0 }
local function countSuccesses()
  if successes.count == 0 then return end
  removeEnded()
  local word, all = paceSucceeded(pace, successes.count, successes.startedAt, KEYS.pending, ARGV.recovered)
  recorded[successes.place] = word
  forward = forward or all
  successes = { count = 0 }
end

local FACT = {
  'outcome', 'entry', 'claimKeys', 'suspended', 'tries', 'earlierTries', 'attempts', 'acceptedBefore', 'nextAt', 'next', 'replay',
}

local function factOf(id)
  local stored, fact = redis.call('HMGET', prefix .. id, unpack(FACT)), {}
  for index, field in ipairs(FACT) do fact[field] = stored[index] or nil end
  if not fact.outcome and deliveredEntry(prefix, id) then fact.outcome = 'delivered' end
  return fact
end

-- Returns a stored number that is one larger; any other value counts as 0.
local function oneMore(stored)
  return whole((string.match(stored or '', '^%-?%d+$') and tonumber(stored) or 0) + 1)
end

local function withAttempt(stored, attempt)
  local read, attempts = pcall(cjson.decode, stored or '[]')
  if not read or type(attempts) ~= 'table' then attempts = {} end
  attempts[#attempts + 1] = attempt
  while #attempts > tonumber(ARGV.mostAttempts) do table.remove(attempts, 1) end
  return cjson.encode(attempts)
end

local function leaveQueue(id)
  if senders[id] then sent[#sent + 1] = id else takeOff(queue, id) end
  senders[id] = nil
end

-- Ends a delivery, and queues the one that waited for it, unless that was sent in the same message.
local function finish(id, fact, outcome, isMember)
  leaveQueue(id)
  closed[#closed + 1] = id
  if fact.replay and fact.outcome == 'pending' and redis.call('EXISTS', ARGV.replayPrefix .. fact.replay) == 1 then
    add(ARGV.replayPrefix .. fact.replay, outcome, 1)
  end
  local next = fact.next
  if next and not isMember[next] and redis.call('HGET', prefix .. next, 'outcome') == 'pending' and not isQueued(queue, next) then
    setDue(queue, next, prefix .. next)
  end
end

local function recordSuccess(ended)
  for index, id in ipairs(ended.ids) do
    local fact = ended.facts[index]
    if fact.outcome and fact.outcome ~= 'delivered' then
      finish(id, fact, 'delivered', ended.isMember)
      if fact.outcome == 'dead' then redis.call('ZREM', KEYS.dead, id) end
      setDelivered(prefix, id, fact, {
        events = KEYS.events,
        isLogged = ended.isLogged == '1',
        atMs = pace.now,
        tries = oneMore(fact.tries),
        attempts = fact.attempts and withAttempt(fact.attempts, cjson.decode(ended.attempt)),
      })
    end
  end
end

-- Stores a failed attempt in a delivery. Returns true when the receiver has accepted another one since its first failure.
local function storeFailure(id, fact, ended, attempt)
  local accepted = acceptedOf(redis.call('HGET', KEYS.receiver, 'accepted') or '')
  local acceptedBefore = finite(fact.acceptedBefore)
  -- A count that was lost begins anew.
  if acceptedBefore and acceptedBefore > accepted then acceptedBefore = nil end
  local fields = { 'tries', oneMore(fact.tries), 'attempts', withAttempt(fact.attempts, attempt), 'answer', ended.answer }
  local function set(field, value)
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if ended.counts == '' then set('earlierTries', oneMore(fact.earlierTries)) end
  if not acceptedBefore then set('acceptedBefore', whole(accepted)) end
  if ended.nextAtMs ~= '' then
    set('nextAt', ended.nextAtMs)
    fact.nextAt = ended.nextAtMs
  end
  redis.call('HSET', prefix .. id, unpack(fields))
  return acceptedBefore ~= nil and acceptedBefore < accepted
end

-- Records a failed attempt. Returns the stored outcome, and the move that is reported.
local function recordFailure(ended)
  countSuccesses()
  pace.certain = pace.certain or certainMs(KEYS.clock)
  local attempt, isBad, word = cjson.decode(ended.attempt), false, ''
  for index, id in ipairs(ended.ids) do
    local fact = ended.facts[index]
    if fact.outcome and fact.outcome ~= 'delivered' and storeFailure(id, fact, ended, attempt) then isBad = true end
  end
  local leader, fact = ended.ids[1], ended.facts[1]
  if ended.disableAfterMs ~= '' then
    local all
    word, all = paceFailed(pace, {
      id = leader,
      reason = attempt.reason,
      restMs = tonumber(ended.restMs),
      isGone = attempt.httpStatus == 410,
      isBad = isBad,
      spanMs = tonumber(ended.disableAfterMs),
    }, { failing = ended.failing, disabled = ended.disabled })
    forward = forward or all
  end
  local state = stateOf(KEYS.receiver)
  if ended.outcome == 'dead' and (ended.disableAfterMs == '' or not isHeld(state)) then
    for index, id in ipairs(ended.ids) do
      local fact = ended.facts[index]
      if fact.outcome and fact.outcome ~= 'delivered' then
        finish(id, fact, 'dead', ended.isMember)
        redis.call('HSET', prefix .. id, 'outcome', 'dead')
        redis.call('ZADD', KEYS.dead, whole(stampMs(KEYS.clock)), id)
        -- A delivery that is opened again joins a batch anew.
        redis.call('HDEL', prefix .. id, 'batch', 'nextAt')
      end
    end
    return 'dead', word
  end
  leaveQueue(leader)
  removeEnded()
  local nextAt = finite(fact.nextAt)
  -- While the whole receiver waits, its pace decides the time of the next try.
  if state == 'ok' and nextAt and nextAt > pace.now then redis.call('ZADD', queue.later, whole(nextAt), leader)
  else setDue(queue, leader, prefix .. leader) end
  return fact.outcome, word
end

local function record(ended)
  local leader = ended.ids[1]
  local holder, startedAt = string.match(senders[leader] or '', '^(.*):(%d+)$')
  local before, isDelivered = ended.facts[1].outcome, ended.outcome == 'delivered'
  if not before then
    -- In an emptied Redis, a recorded end would block the event, when it is reported anew, from its receiver.
    redis.call('HDEL', queue.sending, leader)
    if isDelivered then
      -- A delivered event is not reported as dropped.
      redis.call('ZREM', KEYS.pending, leader)
      recordSuccess(ended)
    end
    return ended.outcome, ''
  end
  if not isDelivered then
    if before == 'delivered' or (ended.process ~= '' and holder ~= ended.process) then return before, '' end
    return recordFailure(ended)
  end
  recordSuccess(ended)
  if ended.disableAfterMs ~= '' then
    successes.count = successes.count + 1
    successes.startedAt = math.max(successes.startedAt or 0, tonumber(startedAt or '') or 0)
    successes.place = #recorded + 2
  end
  return 'delivered', ''
end

if #ARGV.ends > 0 then readSenders() end
for index = 1, #ARGV.ends do
  local ended = {
    ids = {}, facts = {}, isMember = {},
    process = ARGV.ends[index].process, attempt = ARGV.ends[index].attempt, outcome = ARGV.ends[index].outcome,
    nextAtMs = ARGV.ends[index].nextAtMs, isLogged = ARGV.ends[index].isLogged, counts = ARGV.ends[index].counts, answer = ARGV.ends[index].answer,
    restMs = ARGV.ends[index].restMs, disableAfterMs = ARGV.ends[index].disableAfterMs,
    failing = ARGV.ends[index].failing, disabled = ARGV.ends[index].disabled,
  }
  for id in string.gmatch(ARGV.ends[index].ids, '%S+') do
    ended.ids[#ended.ids + 1] = id
    ended.facts[#ended.facts + 1] = factOf(id)
    ended.isMember[id] = true
  end
  local outcome, word = record(ended)
  recorded[#recorded + 1] = outcome
  recorded[#recorded + 1] = word
end
countSuccesses()
removeEnded()
if forward then
  -- The number of open deliveries is bounded (see store/deliveries.ts), and so is this.
  bringForward(queue, queue.later, '+inf', prefix, 5000)
end

local returned, claimed, waitMs, texts = 0, {}, '', {}
if ARGV.order ~= '' then
  nowMs, waitMs, texts, claimed, returned = claimDeliveries({
    receiver = KEYS.receiver, queue = KEYS.queue, subscriptions = KEYS.subscriptions, tracked = ARGV.tracked,
    deliveryPrefix = prefix,
  }, ARGV.process, ARGV.order)
end
if forward or returned > 0 then wakeOthers(KEYS.wakes, KEYS.senders, queue.due, ARGV.receiver, ARGV.process) end
return { nowMs, waitMs, texts, recorded, unpack(claimed) }
