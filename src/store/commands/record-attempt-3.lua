--[[
  Notes one attempt of a delivery, and with it perhaps the end of the delivery.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] dead       zset    the receiver's dead letters

  ARGV[1] event id
  ARGV[2] the attempt, JSON
  ARGV[3] outcome of the delivery after it: pending | delivered | dead
  ARGV[4] number of attempts that is kept
  ARGV[5] lifetime of the fact, ms

  Returns the outcome that stands. A delivery that is delivered stays so.
]]
local before = redis.call('HGET', KEYS[1], 'outcome')
local attempts = cjson.decode(redis.call('HGET', KEYS[1], 'attempts') or '[]')
attempts[#attempts + 1] = cjson.decode(ARGV[2])
while #attempts > tonumber(ARGV[4]) do table.remove(attempts, 1) end
redis.call('HINCRBY', KEYS[1], 'tries', 1)
redis.call('HSET', KEYS[1], 'attempts', cjson.encode(attempts))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
if before == 'delivered' then return before end
local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], 'outcome', ARGV[3])
if ARGV[3] == 'pending' then return ARGV[3] end
redis.call('HSET', KEYS[1], 'endedAt', nowMs)
redis.call('ZREM', KEYS[2], ARGV[1])
if ARGV[3] == 'dead' then redis.call('ZADD', KEYS[3], nowMs, ARGV[1]) end
return ARGV[3]
