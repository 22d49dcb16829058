--[[
  Begins a request that carries a name, or says what became of it.

  KEYS[1] answer     hash    what was asked under the name, and the answer
  KEYS[2] answers    zset    name -> when it was first used, ms

  ARGV[1] name
  ARGV[2] fingerprint of what is asked
  ARGV[3] ms for which a request without answer counts as under way
  ARGV[4] ms for which names are remembered
  ARGV[5] how many are

  Returns { state, status, body }: "new" when it is to be done now, "answered" with the answer, "underWay", "other" when the
  name stands for another request, "full" when no more can be remembered.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('HMGET', KEYS[1], 'fingerprint', 'status', 'body')
if found[1] then
  if found[1] ~= ARGV[2] then return { 'other', '', '' } end
  if found[2] then return { 'answered', found[2], found[3] or '' } end
  return { 'underWay', '', '' }
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - tonumber(ARGV[4])))
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) and not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return { 'full', '', '' }
end
redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[1])
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { 'new', '', '' }
