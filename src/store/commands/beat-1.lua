--[[
  Notes that a process that sends deliveries lives.

  KEYS[1] senders    zset    process -> until when it counts as living, ms

  ARGV[1] process
  ARGV[2] for how long, ms

  Returns now (ms), and the processes that have stopped beating. One that has not beaten in time itself names none: the
  clock has jumped, or all stood still, and the others are given the time to be heard.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Nobody lives for longer than it says: that comes from a clock that was ahead.
local most = string.format('%.0f', now + tonumber(ARGV[2]))
for _, process in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. most, '+inf', 'LIMIT', 0, 100)) do
  redis.call('ZADD', KEYS[1], most, process)
end
local livedUntil = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '')
redis.call('ZADD', KEYS[1], most, ARGV[1])
local at = string.format('%.0f', now)
if not livedUntil or livedUntil < now then return { at } end
return { at, unpack(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. at, 'LIMIT', 0, 100)) }
