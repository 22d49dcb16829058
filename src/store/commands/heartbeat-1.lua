--[[
  Records the heartbeat of a process that sends deliveries.

  KEYS
    senders  zset  process -> time until which it counts as alive, ms

  ARGV
    process  text
    leaseMs  number  ms for which the process counts as alive

  returns
    nowMs  number   Redis time
    gone   ...text  processes whose heartbeat has stopped

  A process whose own heartbeat is late names none: the clock has jumped, or all processes were stopped. The others first get
  the time for a heartbeat.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- A time further ahead than a lease was written by a clock that was ahead.
local most = string.format('%.0f', now + tonumber(ARGV.leaseMs))
for _, process in ipairs(redis.call('ZRANGEBYSCORE', KEYS.senders, '(' .. most, '+inf', 'LIMIT', 0, 100)) do
  redis.call('ZADD', KEYS.senders, most, process)
end
local livedUntil = tonumber(redis.call('ZSCORE', KEYS.senders, ARGV.process) or '')
redis.call('ZADD', KEYS.senders, most, ARGV.process)
local at = string.format('%.0f', now)
if not livedUntil or livedUntil < now then return { at } end
return { at, unpack(redis.call('ZRANGEBYSCORE', KEYS.senders, '-inf', '(' .. at, 'LIMIT', 0, 100)) }
