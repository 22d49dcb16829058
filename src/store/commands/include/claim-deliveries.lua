--[[
  Claims deliveries of one receiver for a process, oldest first, as far as the receiver's pace allows. Needs operator-event, pace,
  queue and definition before it.

  `keys` is { receiver, queue (its base), subscriptions, tracked, deliveryPrefix }. `text` is the JSON of an order:
    most        limit of claimed deliveries; with 0 it only returns lost ones
    intervalMs  ms between two attempts over all processes; null for no limit
    isTogether  true when they are sent in one message, in this order: then a delivery may be claimed together with the one of
                the same subject that it waits for
    held        ids of deliveries that the process has already. Its other claims were given up, or came in a reply that was
                lost: they are queued again

  Returns Redis time (ms), ms until more may be claimed ("" when something else has to happen first), names and texts of the
  subscriptions that lead to the receiver, a list of { id, fields of the fact }, and the number of those queued again.
]]

-- Queues deliveries again that a process has in Redis, but does not hold. Returns the number.
local function returnLost(queue, process, held, prefix)
  local mine = {}
  for _, id in ipairs(held) do mine[id] = true end
  local sending, owner, count = redis.call('HGETALL', queue.sending), process .. ':', 0
  for index = 1, #sending, 2 do
    local id = sending[index]
    if not mine[id] and string.sub(sending[index + 1], 1, #owner) == owner then
      redis.call('HDEL', queue.sending, id)
      setDue(queue, id, prefix .. id)
      count = count + 1
    end
  end
  return count
end

-- Queues what is due by now in a list. Returns the time at which its next is due, ms; nil for none.
local function nextDue(queue, list, now, prefix)
  local first = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
  if first[2] and tonumber(first[2]) <= now then
    bringForward(queue, list, whole(now), prefix, 500)
    first = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
  end
  return finite(first[2])
end

-- Returns at most `most` due deliveries, as ids and turns by turns. A delivery that is tried alone differs from the one before it:
-- it is newer than any that was tried as the newest, or the next one in their order.
local function dueOnes(queue, most, allowed)
  if allowed.isNewest then
    local newest = redis.call('ZREVRANGE', queue.due, 0, 0, 'WITHSCORES')
    if newest[2] and tonumber(newest[2]) > (allowed.probedNewest or -1) then return newest end
    allowed.isNewest = false
  end
  local from = allowed.cautious and allowed.probed
  local found = from and redis.call('ZRANGEBYSCORE', queue.due, '(' .. whole(from), '+inf', 'WITHSCORES', 'LIMIT', 0, 1) or {}
  if #found == 0 then found = redis.call('ZRANGE', queue.due, 0, most - 1, 'WITHSCORES') end
  return found
end

local function claimDeliveries(keys, process, text)
  local order = cjson.decode(text)
  local queue, prefix = openQueue(keys.queue), keys.deliveryPrefix
  local now = timeMs()
  local underWay, returned = redis.call('HLEN', queue.sending), 0
  -- The usual case needs no comparison: all of them are its own.
  if underWay ~= #order.held then
    returned = returnLost(queue, process, order.held, prefix)
    underWay = underWay - returned
  end
  local laterAt = nextDue(queue, queue.later, now, prefix)
  local batchedAt = nextDue(queue, queue.batched, now, prefix)

  local intervalMs = tonumber(order.intervalMs)
  local allowed = paceAllows(keys.receiver, now, order.most, underWay, intervalMs)
  local claimed, sending, texts = {}, {}, {}
  -- Deliveries that were removed from `due`: true where claimed, false where they wait for another.
  local removed = {}
  -- Deliveries that wait only for claimed ones: { id, turn }.
  local released = {}

  local function release(id)
    if not id or removed[id] or redis.call('HGET', prefix .. id, 'outcome') ~= 'pending' then return end
    if removed[id] == nil and isQueued(queue, id) then return end
    released[#released + 1] = { id, numberOf(prefix .. id, 'turn') or 0 }
  end

  -- Removes the released delivery whose turn is first, and before one in `due`. Returns it, or nil.
  local function firstReleased(turn)
    local first
    for index = 1, #released do
      if not first or released[index][2] < released[first][2] then first = index end
    end
    if first and (not turn or released[first][2] < tonumber(turn)) then return table.remove(released, first) end
    return nil
  end

  local seen = {}
  local function name(claimKeys)
    if not claimKeys or seen[claimKeys] then return end
    seen[claimKeys] = true
    local read, list = pcall(cjson.decode, claimKeys)
    if not read or type(list) ~= 'table' then return end
    for _, claimKey in ipairs(list) do
      local subscription = type(claimKey) == 'string' and definitionName(claimKey)
      if subscription and not seen[subscription] then
        seen[subscription] = true
        local definition = definitionOf(subscription, keys.subscriptions, keys.tracked)
        if definition then
          texts[#texts + 1] = subscription
          texts[#texts + 1] = definition
        end
      end
    end
  end

  local function claim(id, turn)
    local key = prefix .. id
    local fact = redis.call('HGETALL', key)
    local fields = {}
    for index = 1, #fact, 2 do fields[fact[index]] = fact[index + 1] end
    -- A delivery without a fact stays open: the check drops and reports it.
    local follows = order.isTogether and fields.after and removed[fields.after]
    removed[id] = fields.outcome == 'pending' and (not fields.after or follows or not waitsForAnother(key, prefix))
    if not removed[id] then return end
    if allowed.cautious then redis.call('HSET', keys.receiver, allowed.isNewest and 'probedNewest' or 'probed', turn) end
    sending[#sending + 1] = id
    sending[#sending + 1] = process .. ':' .. whole(now)
    name(fields.claimKeys)
    claimed[#claimed + 1] = { id, fact }
    if order.isTogether then release(fields.next) end
  end

  local steps = 0
  while #claimed < allowed.most and steps < 1000 do
    local wanted = allowed.most - #claimed
    local due = dueOnes(queue, wanted, allowed)
    local place, passed = 1, {}
    -- Behind the last of a whole piece there may be one whose turn is before that of a released one.
    while #claimed < allowed.most and (due[place] or #due < wanted * 2) do
      steps = steps + 1
      local one = firstReleased(due[place + 1])
      if one then
        claim(one[1], whole(one[2]))
      else
        if not due[place] then break end
        passed[#passed + 1] = due[place]
        claim(due[place], due[place + 1])
        place = place + 2
      end
    end
    if #passed == 0 then break end
    redis.call('ZREM', queue.due, unpack(passed))
  end
  if #sending > 0 then redis.call('HSET', queue.sending, unpack(sending)) end
  if intervalMs and #claimed > 0 then redis.call('HSET', keys.receiver, 'slot', whole(now + intervalMs)) end

  local waitMs = allowed.waitMs
  if not waitMs and #claimed > 0 and intervalMs and not allowed.cautious then waitMs = intervalMs end
  if not waitMs and not isHeld(allowed.state) and (laterAt or batchedAt) then
    waitMs = math.max(0, math.min(laterAt or math.huge, batchedAt or math.huge) - now)
  end
  return whole(now), waitMs and whole(math.ceil(waitMs)) or '', texts, claimed, returned
end
