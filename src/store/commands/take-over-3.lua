--[[
  Queues the deliveries of processes that have stopped beating.

  KEYS[1] queue              base of the receiver's queue: see include/queue.lua
  KEYS[2] senders    zset    process -> until when it counts as living, ms
  KEYS[3] wakes      stream  receivers with something to do

  ARGV[1] receiver
  ARGV[2] prefix of the receiver's delivery keys
  ARGV[3] process that asks; where it does not count as living itself, nobody's silence says anything

  Returns how many were queued.
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS[1])
local now = timeMs()
local function lives(process)
  local untilMs = tonumber(redis.call('ZSCORE', KEYS[2], process) or '')
  return untilMs and untilMs >= now
end
if not lives(ARGV[3]) then return 0 end
local sending = redis.call('HGETALL', queue.sending)
local count = 0
for index = 1, #sending, 2 do
  if not lives(string.match(sending[index + 1], '^(.*):') or '') then
    redis.call('HDEL', queue.sending, sending[index])
    setDue(queue, sending[index], ARGV[2] .. sending[index])
    count = count + 1
  end
end
if count > 0 then wake(KEYS[3], ARGV[1]) end
return count
