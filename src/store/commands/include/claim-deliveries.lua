--[[
  Claims deliveries of one receiver for a process, oldest first, as far as the receiver's pace allows. Needs operator-event, pace,
  queue and definition before it.

  `keys` is { receiver, queue (its base), events, subscriptions, tracked, deliveryPrefix }. `text` is the JSON of an order:
    most        limit of claimed deliveries
    intervalMs  ms between two attempts over all processes; null for no limit
    isTogether  true when they are sent in one message, in this order: then a delivery may be claimed together with the one of
                the same subject that it waits for
    held        ids of deliveries that the process has already. Its other claims came in a reply that was lost

  Returns Redis time (ms), ms until more may be claimed ("" when something else has to happen first), names and texts of the
  subscriptions that lead to the receiver, and a list of { id, fields of the fact, fields of the event's entry }.
]]
local function claimDeliveries(keys, process, text)
  local order = cjson.decode(text)
  local queue, prefix = openQueue(keys.queue), keys.deliveryPrefix
  local now = timeMs()

  local mine = {}
  for _, id in ipairs(order.held) do mine[id] = true end
  local underWay = 0
  local sending = redis.call('HGETALL', queue.sending)
  for index = 1, #sending, 2 do
    local id = sending[index]
    if string.match(sending[index + 1], '^(.*):') == process and not mine[id] then
      redis.call('HDEL', queue.sending, id)
      setDue(queue, id, prefix .. id)
    else
      underWay = underWay + 1
    end
  end

  bringForward(queue, queue.later, whole(now), prefix, 500)
  bringForward(queue, queue.batched, whole(now), prefix, 500)

  local intervalMs = tonumber(order.intervalMs)
  local allowed = paceAllows(keys.receiver, now, order.most, underWay, intervalMs)
  local claimed, texts, named = {}, {}, {}

  local isClaimed = {}
  -- Deliveries that wait only for claimed ones: { id, turn }.
  local released = {}

  local function release(id)
    if not id or isQueued(queue, id) or redis.call('HGET', prefix .. id, 'outcome') ~= 'pending' then return end
    released[#released + 1] = { id, numberOf(prefix .. id, 'turn') or 0 }
  end

  local function firstReleased()
    local first
    for index = 1, #released do
      if not first or released[index][2] < released[first][2] then first = index end
    end
    return first
  end

  -- Returns the delivery whose turn it is. A delivery that is tried alone differs from the one before it.
  local function candidate()
    local from = allowed.cautious and numberOf(keys.receiver, 'probed')
    local found = from and redis.call('ZRANGEBYSCORE', queue.due, '(' .. whole(from), '+inf', 'WITHSCORES', 'LIMIT', 0, 1) or {}
    if #found == 0 then found = redis.call('ZRANGE', queue.due, 0, 0, 'WITHSCORES') end
    local first = firstReleased()
    if first and (not found[1] or released[first][2] < tonumber(found[2])) then
      local one = table.remove(released, first)
      return one[1], whole(one[2])
    end
    return found[1], found[2]
  end

  local function mayGo(id, after)
    return not after or isClaimed[after] or not waitsForAnother(prefix .. id, prefix)
  end

  local function name(claimKeys)
    local read, list = pcall(cjson.decode, claimKeys or '')
    if not read or type(list) ~= 'table' then return end
    for _, claimKey in ipairs(list) do
      local subscription = type(claimKey) == 'string' and definitionName(claimKey)
      if subscription and not named[subscription] then
        named[subscription] = true
        local text = definitionOf(subscription, keys.subscriptions, keys.tracked)
        if text then
          texts[#texts + 1] = subscription
          texts[#texts + 1] = text
        end
      end
    end
  end

  local steps = 0
  while #claimed < allowed.most and steps < 1000 do
    steps = steps + 1
    local id, turn = candidate()
    if not id then break end
    redis.call('ZREM', queue.due, id)
    local key = prefix .. id
    local fact = redis.call('HGETALL', key)
    local fields = {}
    for index = 1, #fact, 2 do fields[fact[index]] = fact[index + 1] end
    -- A delivery without a fact stays open: the check drops and reports it.
    if fields.outcome == 'pending' and mayGo(id, fields.after) then
      redis.call('HSET', queue.sending, id, process .. ':' .. whole(now))
      if allowed.cautious then redis.call('HSET', keys.receiver, 'probed', turn) end
      local entry = fields.entry and string.match(fields.entry, '^%d+%-%d+$')
      local found = entry and redis.call('XRANGE', keys.events, entry, entry) or {}
      name(fields.claimKeys)
      if order.isTogether then
        isClaimed[id] = true
        release(fields.next)
      end
      claimed[#claimed + 1] = { id, fact, #found > 0 and found[1][2] or {} }
    end
  end
  if intervalMs and #claimed > 0 then redis.call('HSET', keys.receiver, 'slot', whole(now + intervalMs)) end

  local waitMs = allowed.waitMs
  if not waitMs and #claimed > 0 and intervalMs and not allowed.cautious then waitMs = intervalMs end
  if not waitMs and not isHeld(stateOf(keys.receiver)) then
    for _, list in ipairs({ queue.later, queue.batched }) do
      local first = redis.call('ZRANGE', list, 0, 0, 'WITHSCORES')
      if first[2] then waitMs = math.min(waitMs or math.huge, math.max(0, tonumber(first[2]) - now)) end
    end
  end
  return whole(now), waitMs and whole(math.ceil(waitMs)) or '', texts, claimed
end
