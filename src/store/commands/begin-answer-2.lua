--[[
  Begins a named request, or returns its state and its stored answer.

  KEYS
    answer   hash  the request under the name, and its answer
    answers  zset  name -> time of its first use, ms

  ARGV
    name          text
    fingerprint   text    fingerprint of the request
    underWayMs    number  ms for which a request without answer counts as under way
    rememberedMs  number  ms for which names are remembered
    most          number  limit of remembered names

  returns
    state   "new" | "answered" | "underWay" | "other" | "full"
    status  text  HTTP status of the answer, where there is one
    body    text

  "new": the caller handles the request now; "other": another request has this name; "full": no more names can be stored.
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
