--[[
  Releases deliveries that a process claimed and has not sent.

  KEYS[1] queue              base of the receiver's queue: see include/queue.lua
  KEYS[2] wakes      stream  receivers with something to do

  ARGV[1] process
  ARGV[2] receiver
  ARGV[3] ms until they come up again; "" for at once
  ARGV[4] prefix of the receiver's delivery keys
  ARGV[5...] ids

  Returns how many were the process's.
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS[1])
local count = 0
for index = 5, #ARGV do
  local id = ARGV[index]
  if holderOf(queue, id) == ARGV[1] then
    redis.call('HDEL', queue.sending, id)
    if ARGV[3] == '' then setDue(queue, id, ARGV[4] .. id)
    else redis.call('ZADD', queue.batched, whole(timeMs() + tonumber(ARGV[3])), id) end
    count = count + 1
  end
end
if count > 0 and ARGV[3] == '' then wake(KEYS[2], ARGV[2], ARGV[1]) end
return count
