--[[
  The queue of a receiver, with the place of each open delivery. A delivery is in one of these, or waits for the one
  before it of the same subject, whose end queues it. All but `sending` are ordered by a number.

  <queue>:due       zset  id -> its turn, microseconds: the first opened goes first
  <queue>:later     zset  id -> time of its next try, ms
  <queue>:batched  zset  id -> time at which it is due again, ms: it waits to be sent together with others, or for a newer version
  <queue>:sending   hash  id -> `<process>:<ms>`, its sender and the start of sending
]]
local function openQueue(base)
  return { due = base .. ':due', later = base .. ':later', batched = base .. ':batched', sending = base .. ':sending' }
end

local function setDue(queue, id, key)
  redis.call('ZADD', queue.due, whole(numberOf(key, 'turn') or 0), id)
end

local function isQueued(queue, id)
  return redis.call('ZSCORE', queue.due, id) or redis.call('ZSCORE', queue.later, id)
    or redis.call('ZSCORE', queue.batched, id) or redis.call('HEXISTS', queue.sending, id) == 1
end

local function takeOff(queue, id)
  redis.call('ZREM', queue.due, id)
  redis.call('ZREM', queue.later, id)
  redis.call('ZREM', queue.batched, id)
  redis.call('HDEL', queue.sending, id)
end

-- Moves the deliveries of a list up to a time to `due`, a bounded number. Returns the number.
local function bringForward(queue, list, upTo, prefix, most)
  local ids = redis.call('ZRANGEBYSCORE', list, '-inf', upTo, 'LIMIT', 0, most)
  for _, id in ipairs(ids) do
    redis.call('ZREM', list, id)
    setDue(queue, id, prefix .. id)
  end
  return #ids
end

local function holderOf(queue, id)
  local held = redis.call('HGET', queue.sending, id)
  if not held then return nil, nil end
  local process, since = string.match(held, '^(.*):(%d+)$')
  return process, tonumber(since)
end

-- True when the delivery before it of the same subject has not ended.
local function waitsForAnother(key, prefix)
  local after = redis.call('HGET', key, 'after')
  return after and redis.call('HGET', prefix .. after, 'outcome') == 'pending'
end
