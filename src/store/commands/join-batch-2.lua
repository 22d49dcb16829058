--[[
  Looks at a delivery that may be sent together with others, and has it join those that wait.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] waiting    zset    the receiver's deliveries that wait to be sent together

  ARGV[1] delivery id
  ARGV[2] "1" to join those that wait, else ""
  ARGV[3] prefix of the receiver's delivery keys
  ARGV[4] prefix of the receiver's batch keys

  Returns { batch id, leader, members... } for a delivery that is in a batch; when the leader's delivery is not open any
  more, this one leads. Else { "", since when it waits (ms), "1" when it waits or "", number of those that wait }.
]]
local batch = redis.call('HGET', KEYS[1], 'batch')
if batch then
  local key = ARGV[4] .. batch
  local leader = redis.call('HGET', key, 'leader')
  -- A batch of another shape is none: the delivery joins a batch anew.
  local read, members = pcall(cjson.decode, redis.call('HGET', key, 'members') or '')
  if leader and read and type(members) == 'table' and #members > 0 then
    if redis.call('HGET', ARGV[3] .. leader, 'outcome') ~= 'pending' then
      leader = ARGV[1]
      redis.call('HSET', key, 'leader', leader)
    end
    return { batch, leader, unpack(members) }
  end
  redis.call('HDEL', KEYS[1], 'batch')
end
local time = redis.call('TIME')
local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if ARGV[2] == '1' then redis.call('ZADD', KEYS[2], 'NX', nowMs, ARGV[1]) end
local joinedAt = redis.call('ZSCORE', KEYS[2], ARGV[1])
return { '', joinedAt or nowMs, joinedAt and '1' or '', string.format('%.0f', redis.call('ZCARD', KEYS[2])) }
