--[[
  Queues open deliveries that are missing in their receiver's queue, although they wait for no other.

  KEYS
    pending  zset    the receiver's open deliveries
    queue    keys    base of the receiver's queue: see include/queue.lua
    wakes    stream  receivers with something to do

  ARGV
    receiver        text
    deliveryPrefix  text    prefix of the receiver's delivery keys
    rank            number  rank of the first to check, oldest first
    count           number  number of deliveries to check

  returns
    checked  number
    queued   ...text
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include delivered
local queue = openQueue(KEYS.queue)
local ids = redis.call('ZRANGE', KEYS.pending, ARGV.rank, ARGV.rank + ARGV.count - 1)
local result = { whole(#ids) }
for _, id in ipairs(ids) do
  if not isQueued(queue, id) then
    local key = ARGV.deliveryPrefix .. id
    local outcome = outcomeOf(ARGV.deliveryPrefix, id)
    -- Another script drops and reports a delivery whose fact is gone.
    if outcome ~= 'pending' then
      if outcome then redis.call('ZREM', KEYS.pending, id) end
    elseif not waitsForAnother(key, ARGV.deliveryPrefix) then
      setDue(queue, id, key)
      result[#result + 1] = id
    end
  end
end
if #result > 1 then wake(KEYS.wakes, ARGV.receiver) end
return result
