--[[
  Opens new deliveries of one receiver, queues them, and moves the receiver's cursor. It may claim deliveries of the receiver in
  the same step.

  KEYS
    pending        zset    the receiver's open deliveries
    queue          keys    base of the receiver's queue: see include/queue.lua
    receiver       hash    state of the receiver
    relayLease     string  fencing token of the relay
    cursors        hash    receiver -> entry
    wakes          stream  receivers with something to do
    senders        zset    process -> time until which it counts as alive, ms
    subscriptions  hash    name -> definition

  ARGV
    fence            text   fencing token of the relay
    receiver         text
    from             text?  its cursor; none when it stays
    cursor           text?  entry to which its cursor moves; none when it stays. Expected entries have their names here and below
    deliveryPrefix   text   prefix of the receiver's delivery keys
    lastPrefix       text   prefix of its keys of newest deliveries about a subject
    replayPrefix     text   prefix of replay keys
    replay           text?  none for deliveries of no replay
    process          text   the relay's process, which needs no wake
    replaysOfPrefix  text   prefix of the keys that hold the replays of an event
    tracked          text   key of the definitions of subjects that are tracked by themselves
    remembered       json?  the relay's memory (include/remembered.lua), by which it opens them; none where it has just
                            read everything
    order            json?  deliveries that this process claims then (include/claim-deliveries.lua); none for no claim
    deliveries       ...(id text, entry text, claimKeys json, subject text?, isSuspended flag)
                            `entry` is that of the event, `claimKeys` those of the claims that lead to the receiver; `subject`
                            is set where its deliveries follow each other; `isSuspended`: the event waited for a suspension

  returns or nothing
    isCurrent      flag     false when the cursor, or something that the relay remembers, has changed: then nothing was done
    entries        list of text
                            ids of the entries that the relay expects, in order
    results        list of "opened" | "open" | "opened-waiting" | "waiting" | "done"
                            per delivery "opened" when the fact is new, "open" when it existed; "opened-waiting" and "waiting"
                            when it waits for the delivery before it, whose end queues it; "done" when it was delivered or is
                            dead
    nowMs          number?  Redis time of the claim; none without an order
    waitMs         number?  ms until more may be claimed; none when something else has to happen first
    subscriptions  hash     name -> text of the subscriptions that lead to the receiver
    claimed        ...[id text, fact hash]  claimed deliveries, and the fields of their facts

  Nothing when another process relays now.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include delivered
-- @include definition
-- @include claim-deliveries
-- @include remembered
-- @include cursor
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return {} end
if ARGV.from ~= '' and cursorOf(KEYS.cursors, ARGV.receiver) ~= ARGV.from then return { 0, {}, {}, '', '', {} } end
local remembered = ARGV.remembered ~= '' and cjson.decode(ARGV.remembered)
local compared = { cursors = KEYS.cursors, receiver = KEYS.receiver, pending = KEYS.pending }
if remembered and not isRemembered(remembered, compared, ARGV.receiver) then return { 0, {}, {}, '', '', {} } end
local ids, expected = {}, {}
if remembered then ids, expected = expectedIds(remembered) end
if not ids then return { 0, {}, {}, '', '', {} } end
local queue = openQueue(KEYS.queue)
local prefix, replay = ARGV.deliveryPrefix, ARGV.replay
local now = timeMs()
-- Each turn is after all before it, also within a millisecond. Redis compares whole numbers ten times as fast.
local turn = math.max(now * 1000, (numberOf(KEYS.receiver, 'turn') or 0) + 1)
if turn > (now + 60000) * 1000 then turn = now * 1000 end

local function isBehind(entry, other)
  local ms, place = string.match(entry, '^(%d+)%-(%d+)$')
  local otherMs, otherPlace = string.match(other or '', '^(%d+)%-(%d+)$')
  if not ms or not otherMs then return false end
  if ms ~= otherMs then return tonumber(ms) > tonumber(otherMs) end
  return tonumber(place) > tonumber(otherPlace)
end

local function open(id, entry, claimKeys, subject, suspended)
  local key = prefix .. id
  redis.call('HSET', key, 'outcome', 'pending', 'entry', entry, 'claimKeys', claimKeys, 'turn', whole(turn))
  if suspended ~= '' then redis.call('HSET', key, 'suspended', suspended) end
  if subject ~= '' then
    -- The chain is stored also where the delivery before is dead: it can be opened again.
    local last = ARGV.lastPrefix .. replay .. ':' .. subject
    local before = redis.call('GET', last)
    local other = before and redis.call('HMGET', prefix .. before, 'outcome', 'entry') or {}
    if before and not other[1] then
      other[2] = deliveredEntry(prefix, before)
      other[1] = other[2] and 'delivered'
    end
    -- A delivery that is opened anew after its fact was lost waits neither for itself nor for a later one, which waits for it.
    if (other[1] == 'pending' or other[1] == 'dead') and isBehind(entry, other[2]) then
      redis.call('HSET', key, 'after', before)
      redis.call('HSET', prefix .. before, 'next', id)
    end
    if not other[1] or not isBehind(other[2], entry) then redis.call('SET', last, id) end
  end
  if replay ~= '' then
    redis.call('HSET', key, 'replay', replay)
    add(ARGV.replayPrefix .. replay, 'opened', 1)
    local replayed = ARGV.replaysOfPrefix .. string.match(id, '^[^~]*')
    redis.call('ZADD', replayed, 0, ARGV.receiver .. ' ' .. replay)
  end
  redis.call('ZADD', KEYS.pending, whole(now), id)
  local waits = subject ~= '' and waitsForAnother(key, prefix)
  if not waits then redis.call('ZADD', queue.due, whole(turn), id) end
  turn = turn + 1
  return waits and 'opened-waiting' or 'opened'
end

-- Before the first attempt later claims are added to a delivery; after it, its bytes stay the same.
local function join(id, entry, more)
  local key = prefix .. id
  if not redis.call('HGET', key, 'tries') and redis.call('HEXISTS', queue.sending, id) == 0 then
    local read, claimKeys = pcall(cjson.decode, redis.call('HGET', key, 'claimKeys') or '')
    if not read or type(claimKeys) ~= 'table' then claimKeys = {} end
    local seen = {}
    for _, claimKey in ipairs(claimKeys) do seen[claimKey] = true end
    for _, claimKey in ipairs(cjson.decode(more)) do
      if not seen[claimKey] then claimKeys[#claimKeys + 1] = claimKey end
    end
    redis.call('HSET', key, 'entry', entry, 'claimKeys', #claimKeys == 0 and '[]' or cjson.encode(claimKeys))
  end
  redis.call('ZADD', KEYS.pending, 'NX', whole(now), id)
  if waitsForAnother(key, prefix) then return 'waiting' end
  -- Something else wrote a fact that has no place in the queue.
  if not isQueued(queue, id) then setDue(queue, id, key) end
  return 'open'
end

local results, isNew = {}, false
for index = 1, #ARGV.deliveries do
  local id, entry, claimKeys = ARGV.deliveries[index].id, ARGV.deliveries[index].entry, ARGV.deliveries[index].claimKeys
  entry = ids[entry] or entry
  local subject, suspended = ARGV.deliveries[index].subject, ARGV.deliveries[index].isSuspended
  local outcome = outcomeOf(prefix, id)
  if outcome == 'delivered' or outcome == 'dead' then
    results[#results + 1] = 'done'
  elseif outcome then
    results[#results + 1] = join(id, entry, claimKeys)
    isNew = true
  else
    results[#results + 1] = open(id, entry, claimKeys, subject, suspended)
    isNew = true
  end
end
local cursor = ids[ARGV.cursor] or ARGV.cursor
if cursor ~= '' then redis.call('HSET', KEYS.cursors, ARGV.receiver, cursor) end
if remembered then
  for _, name in ipairs(remembered.passed) do redis.call('HSET', KEYS.cursors, name, cursor) end
  if remembered.counted ~= '' then redis.call('SET', remembered.counted, cursor) end
end
if isNew then redis.call('HSET', KEYS.receiver, 'turn', whole(turn)) end
local nowMs, waitMs, texts, claimed, returned = '', '', {}, {}, 0
if ARGV.order ~= '' then
  nowMs, waitMs, texts, claimed, returned = claimDeliveries({
    receiver = KEYS.receiver, queue = KEYS.queue, subscriptions = KEYS.subscriptions, tracked = ARGV.tracked,
    deliveryPrefix = prefix,
  }, ARGV.process, ARGV.order)
end
if isNew or returned > 0 then wakeOthers(KEYS.wakes, KEYS.senders, queue.due, ARGV.receiver, ARGV.process) end
return { 1, expected, results, nowMs, waitMs, texts, unpack(claimed) }
