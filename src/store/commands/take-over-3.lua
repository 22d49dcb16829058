--[[
  Queues the deliveries of processes whose heartbeat has stopped.

  KEYS
    queue    keys    base of the receiver's queue: see include/queue.lua
    senders  zset    process -> time until which it counts as alive, ms
    wakes    stream  receivers with something to do

  ARGV
    receiver        text
    deliveryPrefix  text  prefix of the receiver's delivery keys
    process         text  calling process; where it does not count as alive itself, nothing is queued

  returns number
    Number of queued deliveries.
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS.queue)
local now = timeMs()
local function lives(process)
  local untilMs = tonumber(redis.call('ZSCORE', KEYS.senders, process) or '')
  return untilMs and untilMs >= now
end
if not lives(ARGV.process) then return 0 end
local sending = redis.call('HGETALL', queue.sending)
local count = 0
for index = 1, #sending, 2 do
  if not lives(string.match(sending[index + 1], '^(.*):') or '') then
    redis.call('HDEL', queue.sending, sending[index])
    setDue(queue, sending[index], ARGV.deliveryPrefix .. sending[index])
    count = count + 1
  end
end
if count > 0 then wake(KEYS.wakes, ARGV.receiver) end
return count
