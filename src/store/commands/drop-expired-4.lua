--[[
  Drops open deliveries of a receiver that can never be made: the retention of their event has ended, or their fact is
  gone. One that is being sent is left to its end.

  KEYS[1] pending    zset    the receiver's open deliveries
  KEYS[2] queue              base of the receiver's queue: see include/queue.lua
  KEYS[3] receiver   hash    state of the receiver
  KEYS[4] dropped    list    see include/dropped.lua

  ARGV[1] prefix of the receiver's delivery keys
  ARGV[2] prefix of replay keys
  ARGV[3] ms before which an event has expired
  ARGV[4] rank of the first that is looked at, oldest first
  ARGV[5] how many are looked at

  Returns how many were looked at, and how many of them were dropped.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local queue = openQueue(KEYS[2])
local open = { pending = KEYS[1], queue = queue, prefix = ARGV[1], replays = ARGV[2], receiver = KEYS[3], dropped = KEYS[4] }
local ids = redis.call('ZRANGE', KEYS[1], ARGV[4], ARGV[4] + ARGV[5] - 1)
local count = 0
for _, id in ipairs(ids) do
  local outcome, entry = unpack(redis.call('HMGET', ARGV[1] .. id, 'outcome', 'entry'))
  local at = tonumber(string.match(entry or '', '^(%d+)%-%d+$') or '')
  local reason = not outcome and 'lost' or outcome == 'pending' and at and at < tonumber(ARGV[3]) and 'retention'
  if reason and redis.call('HEXISTS', queue.sending, id) == 0 and dropDelivery(open, id, reason) then count = count + 1 end
end
return { #ids, count }
