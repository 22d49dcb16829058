--[[
  Freezes what is sent in one message, before it is sent: whoever sends it again after a crash sends the same.

  KEYS[1] delivery   hash    facts of the delivery that leads
  KEYS[2] waiting    zset    the receiver's deliveries that wait to be sent together
  KEYS[3] batches    zset    the receiver's batches -> when they were frozen, ms

  ARGV[1] id of the delivery that leads
  ARGV[2] how many may be in it: 1 for a message about the leader's event alone
  ARGV[3] prefix of the receiver's delivery keys
  ARGV[4] prefix of the receiver's batch keys
  ARGV[5] hash of the confirmed time

  Returns { batch id, members... }; nothing when the delivery is not open any more, or is in a batch.
]]
-- @include confirmed-time
local most = tonumber(ARGV[2])
local members, taken = {}, {}

local function take(id)
  local fact = redis.call('HMGET', ARGV[3] .. id, 'outcome', 'batch', 'next')
  redis.call('ZREM', KEYS[2], id)
  if taken[id] or fact[1] ~= 'pending' or fact[2] then return end
  members[#members + 1] = id
  taken[id] = true
  -- What waits for this one, as the deliveries of one subject do, can be reported with it.
  if most > 1 and #members < most and fact[3] then take(fact[3]) end
end

take(ARGV[1])
if #members == 0 then return {} end
while #members < most do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then break end
  take(oldest)
end
local batch = redis.sha1hex(table.concat(members, ' '))
for _, id in ipairs(members) do redis.call('HSET', ARGV[3] .. id, 'batch', batch) end
redis.call('HSET', ARGV[4] .. batch, 'leader', ARGV[1], 'members', cjson.encode(members))
redis.call('ZADD', KEYS[3], string.format('%.0f', stampMs(ARGV[5])), batch)
return { batch, unpack(members) }
