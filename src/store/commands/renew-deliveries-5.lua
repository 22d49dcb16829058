--[[
  Opens dead letters again, with a full number of attempts.

  KEYS
    pending     zset    the receiver's open deliveries
    dead        zset    the receiver's dead letters
    queue       keys    base of the receiver's queue: see include/queue.lua
    relayLease  string  fencing token of the relay
    wakes       stream  receivers with something to do

  ARGV
    fence           text     fencing token; "" when the caller is not the relay
    receiver        text
    deliveryPrefix  text     prefix of the receiver's delivery keys
    replayPrefix    text     prefix of replay keys
    ids             ...text

  returns number
    Number of those that are open again; -1 when another process relays now.
]]
-- @include operator-event
-- @include pace
-- @include queue
if ARGV.fence ~= '' and redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return -1 end
local queue = openQueue(KEYS.queue)
local count = 0
for index = 1, #ARGV.ids do
  local id = ARGV.ids[index]
  local key = ARGV.deliveryPrefix .. id
  redis.call('ZREM', KEYS.dead, id)
  if redis.call('HGET', key, 'outcome') == 'dead' then
    redis.call('HSET', key, 'outcome', 'pending', 'earlierTries', redis.call('HGET', key, 'tries') or '0')
    redis.call('HDEL', key, 'nextAt', 'acceptedBefore')
    local turn = numberOf(key, 'turn')
    local openedAt = turn and turn / 1000 or tonumber(string.match(redis.call('HGET', key, 'entry') or '', '^%d+')) or 0
    redis.call('ZADD', KEYS.pending, whole(math.floor(openedAt)), id)
    -- A delivery that waits for another is detected at its turn.
    setDue(queue, id, key)
    local replay = redis.call('HGET', key, 'replay')
    if replay and redis.call('EXISTS', ARGV.replayPrefix .. replay) == 1 then
      add(ARGV.replayPrefix .. replay, 'dead', -1)
    end
    count = count + 1
  end
end
if count > 0 then wake(KEYS.wakes, ARGV.receiver) end
return count
