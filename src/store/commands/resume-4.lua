--[[
  Takes the enabling of a receiver one step further: queues a bounded part of what waits for another try, and when none
  is left lets attempts be made. Only the process that holds the lease may.

  KEYS[1] receiver   hash    state of the receiver: see include/pace.lua
  KEYS[2] queue              base of the receiver's queue: see include/queue.lua
  KEYS[3] lease      string  fencing token of the relay
  KEYS[4] wakes      stream  receivers with something to do

  ARGV[1] fencing token
  ARGV[2] receiver
  ARGV[3] prefix of the receiver's delivery keys
  ARGV[4] how many are queued at once

  Returns "enabled", "more" when there is more to queue, or "held" when another process relays now or the receiver was
  disabled meanwhile.
]]
-- @include operator-event
-- @include pace
-- @include queue
if redis.call('GET', KEYS[3]) ~= ARGV[1] or stateOf(KEYS[1]) ~= 'enabling' then return 'held' end
local queue = openQueue(KEYS[2])
if bringForward(queue, queue.later, '+inf', ARGV[3], tonumber(ARGV[4])) > 0 then return 'more' end
setState(KEYS[1], 'ok')
redis.call('HDEL', KEYS[1], 'since', 'refusals', 'disabledAt', 'disabledBy')
wake(KEYS[4], ARGV[2])
return 'enabled'
