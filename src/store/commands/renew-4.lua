--[[
  Has a delivery begin anew: a dead letter is open again, and one that is open has all its attempts before it.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] dead       zset    the receiver's dead letters
  KEYS[4] lease      string  fencing token of the relay

  ARGV[1] fencing token; "" when the caller is no relay
  ARGV[2] delivery id
  ARGV[3] lifetime of the fact, ms
  ARGV[4] prefix of the receiver's delivery keys
  ARGV[5] prefix of replay keys

  Returns "open" when a job should exist, "waiting" when the delivery before it is open, whose end queues it; "delivered"
  when there is nothing to do, "gone" when its time is over, "fenced" when another process relays now.
]]
if ARGV[1] ~= '' and redis.call('GET', KEYS[4]) ~= ARGV[1] then return 'fenced' end
local outcome = redis.call('HGET', KEYS[1], 'outcome')
if not outcome then
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
  return 'gone'
end
if outcome == 'delivered' then return 'delivered' end
redis.call('HSET', KEYS[1], 'outcome', 'pending', 'earlierTries', redis.call('HGET', KEYS[1], 'tries') or '0')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if outcome == 'dead' then
  redis.call('ZREM', KEYS[3], ARGV[2])
  redis.call('ZADD', KEYS[2], tonumber(redis.call('HGET', KEYS[1], 'openedAt') or '0') or 0, ARGV[2])
  local replay = redis.call('HGET', KEYS[1], 'replay')
  if replay and redis.call('EXISTS', ARGV[5] .. replay) == 1 then
    redis.call('HINCRBY', ARGV[5] .. replay, 'dead', -1)
  end
end
local after = redis.call('HGET', KEYS[1], 'after')
if after and redis.call('HGET', ARGV[4] .. after, 'outcome') == 'pending' then return 'waiting' end
return 'open'
