--[[
  Notes that a process that sends deliveries lives.

  KEYS[1] senders    zset    process -> until when it counts as living, ms

  ARGV[1] process
  ARGV[2] for how long, ms

  Returns the processes that have stopped beating.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, 100)
