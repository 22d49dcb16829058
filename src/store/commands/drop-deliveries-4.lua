--[[
  Drops open deliveries of a receiver, for a reason that their sender has found.

  KEYS
    pending   zset  the receiver's open deliveries
    queue     keys  base of the receiver's queue: see include/queue.lua
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua

  ARGV
    deliveryPrefix  text     prefix of the receiver's delivery keys
    replayPrefix    text     prefix of replay keys
    reason          text
    ids             ...text

  returns number
    Number of those that were open.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local open = {
  pending = KEYS.pending, queue = openQueue(KEYS.queue), prefix = ARGV.deliveryPrefix, replays = ARGV.replayPrefix,
  receiver = KEYS.receiver, dropped = KEYS.dropped,
}
local count = 0
for i = 1, #ARGV.ids do
  if dropDelivery(open, ARGV.ids[i], ARGV.reason) then count = count + 1 end
end
return count
