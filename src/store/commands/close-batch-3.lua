--[[
  Freezes the content of one message before it is sent: after a crash the same content is sent again.

  KEYS
    delivery  hash  facts of the delivery that leads
    waiting   zset  the receiver's deliveries that wait to be sent together
    batches   zset  the receiver's batches -> time at which they were frozen, ms

  ARGV
    id              text    id of the delivery that leads
    most            number  limit of its deliveries: 1 for a message about the leader's event alone
    deliveryPrefix  text    prefix of the receiver's delivery keys
    batchPrefix     text    prefix of the receiver's batch keys
    clock           text    hash of the confirmed time

  returns or nothing
    batch    text
    members  ...text

  Nothing when the delivery is not open any more, or is in a batch.
]]
-- @include confirmed-time
local most = tonumber(ARGV.most)
local members, included = {}, {}

local function take(id)
  local fact = redis.call('HMGET', ARGV.deliveryPrefix .. id, 'outcome', 'batch', 'next')
  redis.call('ZREM', KEYS.waiting, id)
  if included[id] or fact[1] ~= 'pending' or fact[2] then return end
  members[#members + 1] = id
  included[id] = true
  -- A delivery that waits for this one, as those of one subject do, can be sent with it.
  if most > 1 and #members < most and fact[3] then take(fact[3]) end
end

take(ARGV.id)
if #members == 0 then return {} end
while #members < most do
  local oldest = redis.call('ZRANGE', KEYS.waiting, 0, 0)[1]
  if not oldest then break end
  take(oldest)
end
local batch = redis.sha1hex(table.concat(members, ' '))
for _, id in ipairs(members) do redis.call('HSET', ARGV.deliveryPrefix .. id, 'batch', batch) end
redis.call('HSET', ARGV.batchPrefix .. batch, 'leader', ARGV.id, 'members', cjson.encode(members))
redis.call('ZADD', KEYS.batches, string.format('%.0f', stampMs(ARGV.clock)), batch)
return { batch, unpack(members) }
