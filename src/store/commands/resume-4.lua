--[[
  Continues the enabling of a receiver: queues a bounded part of the deliveries that wait for another try, and allows attempts
  when none remains. Only the process that holds the lease may.

  KEYS
    receiver    hash    state of the receiver: see include/pace.lua
    queue       keys    base of the receiver's queue: see include/queue.lua
    relayLease  string  fencing token of the relay
    wakes       stream  receivers with something to do

  ARGV
    fence           text    fencing token
    receiver        text
    deliveryPrefix  text    prefix of the receiver's delivery keys
    most            number  limit of deliveries queued at once

  returns "enabled" | "more" | "held"
    "more" when there is more to queue; "held" when another process relays now or the receiver was disabled meanwhile.
]]
-- @include operator-event
-- @include pace
-- @include queue
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence or stateOf(KEYS.receiver) ~= 'enabling' then return 'held' end
local queue = openQueue(KEYS.queue)
if bringForward(queue, queue.later, '+inf', ARGV.deliveryPrefix, tonumber(ARGV.most)) > 0 then return 'more' end
setState(KEYS.receiver, 'ok')
redis.call('HDEL', KEYS.receiver, 'since', 'refusals', 'disabledAt', 'disabledBy')
wake(KEYS.wakes, ARGV.receiver)
return 'enabled'
