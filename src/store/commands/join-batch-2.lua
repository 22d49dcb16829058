--[[
  Reads the batch of a delivery that may be sent together with others, and adds it to the waiting ones.

  KEYS
    delivery  hash  facts of the delivery
    waiting   zset  the receiver's deliveries that wait to be sent together

  ARGV
    id              text  delivery id
    joins           flag  true to add it to the waiting deliveries
    deliveryPrefix  text  prefix of the receiver's delivery keys
    batchPrefix     text  prefix of the receiver's batch keys

  returns
    batch  text     "" for a delivery in no batch
    first  text     leader of its batch; without a batch the time from which it waits (ms)
    rest   ...text  members of its batch; without a batch "1" when it waits or "", and the number of waiting ones

  This delivery leads when the leader's is not open any more.
]]
local batch = redis.call('HGET', KEYS.delivery, 'batch')
if batch then
  local key = ARGV.batchPrefix .. batch
  local leader = redis.call('HGET', key, 'leader')
  -- A batch of another shape does not count: the delivery joins a batch anew.
  local read, members = pcall(cjson.decode, redis.call('HGET', key, 'members') or '')
  if leader and read and type(members) == 'table' and #members > 0 then
    if redis.call('HGET', ARGV.deliveryPrefix .. leader, 'outcome') ~= 'pending' then
      leader = ARGV.id
      redis.call('HSET', key, 'leader', leader)
    end
    return { batch, leader, unpack(members) }
  end
  redis.call('HDEL', KEYS.delivery, 'batch')
end
local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if ARGV.joins == '1' then redis.call('ZADD', KEYS.waiting, 'NX', nowMs, ARGV.id) end
local joinedAt = redis.call('ZSCORE', KEYS.waiting, ARGV.id)
return { '', joinedAt or nowMs, joinedAt and '1' or '', string.format('%.0f', redis.call('ZCARD', KEYS.waiting)) }
