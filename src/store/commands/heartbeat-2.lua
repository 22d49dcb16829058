--[[
  Records the heartbeat of a process, and its instance (store/process-instance.ts). Returns the state of the other processes.

  KEYS
    senders    zset  process -> time until which it counts as alive, ms; 0 once it has ended, or is declared gone
    instances  hash  process -> its instance, and `beats:<process>` -> number of its heartbeats

  ARGV
    process   text
    leaseMs   number  ms for which the process counts as alive
    instance  text    JSON of its instance

  returns
    nowMs   number  Redis time
    isVoid  flag    true when it did not count as alive before: its claims may be another's by now
    before  number  time until which it counted as alive, 0 for none
    beats   number  number of its heartbeats, with this one
    gone    list of text  processes that have ended, were declared gone, or whose heartbeat has stopped
    others  list of (process text, lease text, instance text)  processes of other instances that count as alive; `lease` is
                                                               that time

  A process whose own heartbeat is late does not name those whose heartbeat has stopped: the clock has jumped, or all processes
  were stopped. The others first get the time for a heartbeat.
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
if redis.call('HGET', KEYS.instances, ARGV.process) ~= ARGV.instance then
  redis.call('HSET', KEYS.instances, ARGV.process, ARGV.instance)
end
local beats = redis.call('HINCRBY', KEYS.instances, 'beats:' .. ARGV.process, 1)
local at = string.format('%.0f', now)
local isVoid = not livedUntil or livedUntil < now
local gone = redis.call('ZRANGEBYSCORE', KEYS.senders, '-inf', isVoid and '0' or '(' .. at, 'LIMIT', 0, 100)
local alive, others = redis.call('ZRANGEBYSCORE', KEYS.senders, at, '+inf', 'WITHSCORES', 'LIMIT', 0, 100), {}
local names = {}
for index = 1, #alive, 2 do names[#names + 1] = alive[index] end
for index, instance in ipairs(redis.call('HMGET', KEYS.instances, unpack(names))) do
  -- One of the same instance lives as long as the caller.
  if names[index] ~= ARGV.process and instance ~= ARGV.instance then
    others[#others + 1] = names[index]
    others[#others + 1] = alive[2 * index]
    others[#others + 1] = instance or ''
  end
end
return { at, isVoid and '1' or '0', string.format('%.0f', livedUntil or 0), string.format('%.0f', beats), gone, others }
