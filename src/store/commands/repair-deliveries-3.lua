--[[
  Queues open deliveries that are nowhere in their receiver's queue, though they wait for no other.

  KEYS
    pending  zset    the receiver's open deliveries
    queue    keys    base of the receiver's queue: see include/queue.lua
    wakes    stream  receivers with something to do

  ARGV
    receiver        text
    deliveryPrefix  text    prefix of the receiver's delivery keys
    rank            number  rank of the first that is looked at, oldest first
    count           number  how many are looked at

  returns
    checked  number
    queued   ...text
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS.queue)
local ids = redis.call('ZRANGE', KEYS.pending, ARGV.rank, ARGV.rank + ARGV.count - 1)
local result = { whole(#ids) }
for _, id in ipairs(ids) do
  -- Versions before this one had them expire.
  redis.call('PERSIST', ARGV.deliveryPrefix .. id)
  if not isQueued(queue, id) then
    local key = ARGV.deliveryPrefix .. id
    local outcome = redis.call('HGET', key, 'outcome')
    -- One whose fact is gone is dropped, and reported, by another script.
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
