--[[
  Has dead letters begin anew: they are open again, with all attempts before them.

  KEYS[1] pending    zset    the receiver's open deliveries
  KEYS[2] dead       zset    the receiver's dead letters
  KEYS[3] queue              base of the receiver's queue: see include/queue.lua
  KEYS[4] lease      string  fencing token of the relay
  KEYS[5] wakes      stream  receivers with something to do

  ARGV[1] fencing token; "" when the caller is no relay
  ARGV[2] receiver
  ARGV[3] prefix of the receiver's delivery keys
  ARGV[4] prefix of replay keys
  ARGV[5...] ids

  Returns how many are open again; -1 when another process relays now.
]]
-- @include operator-event
-- @include pace
-- @include queue
if ARGV[1] ~= '' and redis.call('GET', KEYS[4]) ~= ARGV[1] then return -1 end
local queue = openQueue(KEYS[3])
local count = 0
for index = 5, #ARGV do
  local id = ARGV[index]
  local key = ARGV[3] .. id
  redis.call('ZREM', KEYS[2], id)
  if redis.call('HGET', key, 'outcome') == 'dead' then
    redis.call('HSET', key, 'outcome', 'pending', 'earlierTries', redis.call('HGET', key, 'tries') or '0')
    redis.call('HDEL', key, 'nextAt', 'failedAt')
    local turn = tonumber(redis.call('HGET', key, 'turn') or '')
    local openedAt = turn and turn / 1000 or tonumber(string.match(redis.call('HGET', key, 'entry') or '', '^%d+')) or 0
    redis.call('ZADD', KEYS[1], whole(math.floor(openedAt)), id)
    -- One that waits for another is found out when its turn comes.
    setDue(queue, id, key)
    local replay = redis.call('HGET', key, 'replay')
    if replay and redis.call('EXISTS', ARGV[4] .. replay) == 1 then
      add(ARGV[4] .. replay, 'dead', -1)
    end
    count = count + 1
  end
end
if count > 0 then wake(KEYS[5], ARGV[2]) end
return count
