--[[
  Drops open deliveries of a receiver, each for a reason that their sender has found.

  KEYS[1] pending    zset    the receiver's open deliveries
  KEYS[2] queue              base of the receiver's queue: see include/queue.lua
  KEYS[3] receiver   hash    state of the receiver
  KEYS[4] dropped    list    see include/dropped.lua

  ARGV[1] prefix of the receiver's delivery keys
  ARGV[2] prefix of replay keys
  ARGV[3] reason
  ARGV[4..] ids

  Returns how many were open.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local open = {
  pending = KEYS[1], queue = openQueue(KEYS[2]), prefix = ARGV[1], replays = ARGV[2], receiver = KEYS[3], dropped = KEYS[4],
}
local count = 0
for i = 4, #ARGV do
  if dropDelivery(open, ARGV[i], ARGV[3]) then count = count + 1 end
end
return count
