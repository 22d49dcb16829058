--[[
  Begins a request that carries a name, or says what became of it.

  KEYS
    answer   hash  what was asked under the name, and the answer
    answers  zset  name -> when it was first used, ms

  ARGV
    name          text
    fingerprint   text    fingerprint of what is asked
    underWayMs    number  ms for which a request without answer counts as under way
    rememberedMs  number  ms for which names are remembered
    most          number  how many are

  returns
    state   "new" | "answered" | "underWay" | "other" | "full"
    status  text  HTTP status of the answer, where there is one
    body    text

  "new" when it is to be done now, "other" when the name stands for another request, "full" when no more can be remembered.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = redis.call('HMGET', KEYS.answer, 'fingerprint', 'status', 'body')
if found[1] then
  if found[1] ~= ARGV.fingerprint then return { 'other', '', '' } end
  if found[2] then return { 'answered', found[2], found[3] or '' } end
  return { 'underWay', '', '' }
end
redis.call('ZREMRANGEBYSCORE', KEYS.answers, '-inf', string.format('%.0f', now - tonumber(ARGV.rememberedMs)))
if redis.call('ZCARD', KEYS.answers) >= tonumber(ARGV.most) and not redis.call('ZSCORE', KEYS.answers, ARGV.name) then
  return { 'full', '', '' }
end
redis.call('ZADD', KEYS.answers, string.format('%.0f', now), ARGV.name)
redis.call('HSET', KEYS.answer, 'fingerprint', ARGV.fingerprint)
redis.call('PEXPIRE', KEYS.answer, ARGV.underWayMs)
return { 'new', '', '' }
