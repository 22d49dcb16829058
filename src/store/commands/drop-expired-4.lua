--[[
  Drops open deliveries of a receiver that can never be made: the retention of their event has ended, or their fact is
  gone. A delivery that is being sent is not dropped.

  KEYS
    pending   zset  the receiver's open deliveries
    queue     keys  base of the receiver's queue: see include/queue.lua
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua

  ARGV
    deliveryPrefix  text    prefix of the receiver's delivery keys
    replayPrefix    text    prefix of replay keys
    beforeMs        number  ms before which an event has expired
    rank            number  rank of the first to check, oldest first
    count           number  number of deliveries to check

  returns
    checked  number  number of checked deliveries
    dropped  number  number of dropped deliveries
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include delivered
-- @include dropped
local queue = openQueue(KEYS.queue)
local open = {
  pending = KEYS.pending, queue = queue, prefix = ARGV.deliveryPrefix, replays = ARGV.replayPrefix,
  receiver = KEYS.receiver, dropped = KEYS.dropped,
}
local ids = redis.call('ZRANGE', KEYS.pending, ARGV.rank, ARGV.rank + ARGV.count - 1)
local count = 0
for _, id in ipairs(ids) do
  local entry = redis.call('HGET', ARGV.deliveryPrefix .. id, 'entry')
  local outcome = outcomeOf(ARGV.deliveryPrefix, id)
  local at = tonumber(string.match(entry or '', '^(%d+)%-%d+$') or '')
  local reason = not outcome and 'lost' or outcome == 'pending' and at and at < tonumber(ARGV.beforeMs) and 'retention'
  if reason and redis.call('HEXISTS', queue.sending, id) == 0 and dropDelivery(open, id, reason) then count = count + 1 end
end
return { #ids, count }
