--[[
  Queues open deliveries that are nowhere in their receiver's queue, though they wait for no other.

  KEYS[1] pending    zset    the receiver's open deliveries
  KEYS[2] queue              base of the receiver's queue: see include/queue.lua
  KEYS[3] wakes      stream  receivers with something to do

  ARGV[1] receiver
  ARGV[2] prefix of the receiver's delivery keys
  ARGV[3] rank of the first that is looked at, oldest first
  ARGV[4] how many are looked at

  Returns { number of those looked at, ids of those queued... }.
]]
-- @include operator-event
-- @include pace
-- @include queue
local queue = openQueue(KEYS[2])
local ids = redis.call('ZRANGE', KEYS[1], ARGV[3], ARGV[3] + ARGV[4] - 1)
local result = { whole(#ids) }
for _, id in ipairs(ids) do
  -- Versions before this one had them expire.
  redis.call('PERSIST', ARGV[2] .. id)
  if not isQueued(queue, id) then
    local key = ARGV[2] .. id
    local outcome = redis.call('HGET', key, 'outcome')
    -- One whose fact is gone is dropped, and reported, by another script.
    if outcome ~= 'pending' then
      if outcome then redis.call('ZREM', KEYS[1], id) end
    elseif not waitsForAnother(key, ARGV[2]) then
      setDue(queue, id, key)
      result[#result + 1] = id
    end
  end
end
if #result > 1 then wake(KEYS[3], ARGV[1]) end
return result
