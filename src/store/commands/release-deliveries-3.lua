--[[
  Releases deliveries that a process claimed and has not sent.

  KEYS
    queue    keys    base of the receiver's queue: see include/queue.lua
    wakes    stream  receivers with something to do
    senders  zset    process -> time until which it counts as alive, ms

  ARGV
    process         text
    receiver        text
    afterMs         number?  ms until they are due again; none for at once
    deliveryPrefix  text     prefix of the receiver's delivery keys
    ids             ...text

  returns number
    Number of those that were the process's.
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS.queue)
local count = 0
for index = 1, #ARGV.ids do
  local id = ARGV.ids[index]
  if holderOf(queue, id) == ARGV.process then
    redis.call('HDEL', queue.sending, id)
    if ARGV.afterMs == '' then setDue(queue, id, ARGV.deliveryPrefix .. id)
    else redis.call('ZADD', queue.batched, whole(timeMs() + tonumber(ARGV.afterMs)), id) end
    count = count + 1
  end
end
if count > 0 and ARGV.afterMs == '' then wakeOthers(KEYS.wakes, KEYS.senders, queue.due, ARGV.receiver, ARGV.process) end
return count
