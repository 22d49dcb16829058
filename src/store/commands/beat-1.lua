--[[
  Notes that a process that sends deliveries lives.

  KEYS
    senders  zset  process -> until when it counts as living, ms

  ARGV
    process  text
    leaseMs  number  for how long, ms

  returns
    nowMs  number   Redis time
    gone   ...text  the processes that have stopped beating

  A process that has not beaten in time itself names none: the clock has jumped, or all stood still, and the others are given
  the time to beat.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Nobody lives for longer than it says: that comes from a clock that was ahead.
local most = string.format('%.0f', now + tonumber(ARGV.leaseMs))
for _, process in ipairs(redis.call('ZRANGEBYSCORE', KEYS.senders, '(' .. most, '+inf', 'LIMIT', 0, 100)) do
  redis.call('ZADD', KEYS.senders, most, process)
end
local livedUntil = tonumber(redis.call('ZSCORE', KEYS.senders, ARGV.process) or '')
redis.call('ZADD', KEYS.senders, most, ARGV.process)
local at = string.format('%.0f', now)
if not livedUntil or livedUntil < now then return { at } end
return { at, unpack(redis.call('ZRANGEBYSCORE', KEYS.senders, '-inf', '(' .. at, 'LIMIT', 0, 100)) }
