--[[
  Tracks a subject by itself, beside what the config names: all of it, or nothing.

  KEYS[1] tracked    hash    subject -> definition
  KEYS[2] ended      zset    subject whose tracking was ended -> when, ms
  KEYS[3] wanted     hash    root -> since when it is wanted (ms)
  KEYS[4] plan       hash    clock of the plan of the subject's endpointGroup (include/plan.lua)
  KEYS[5] claims     hash    root -> claim
  KEYS[6] subject    hash    snapshot
  KEYS[7] imported     hash    quote -> what was imported of it

  ARGV[1] subject id
  ARGV[2] definition, JSON that begins with "{"
  ARGV[3] what was imported of a quote, JSON; "" for nothing
  ARGV[4] the plan's time, ms; "" for that of Redis

  Returns { 1 when it was not tracked, else 0; since when it is, ms }. A definition that stood is replaced.
]]
-- @include plan
-- @include confirmed-time
-- @include ended
local subject, root = ARGV[1], '~|' .. ARGV[1]
local now = string.format('%.0f', stampMs(rootOf(KEYS[6], subject) .. ':clock'))
local plan = openPlan(KEYS[4], ARGV[4])

local createdAt = string.match(redis.call('HGET', KEYS[1], subject) or '', '^{"createdAtMs":(%d+),"removedAtMs":null,')
local isNew = not createdAt
createdAt = createdAt or now
redis.call(
  'HSET', KEYS[1], subject,
  '{"createdAtMs":' .. createdAt .. ',"removedAtMs":null,' .. string.sub(ARGV[2], 2)
)
redis.call('ZREM', KEYS[2], subject)

local since = redis.call('HGET', KEYS[3], root)
if not since or not string.match(since, '^%d+$') then
  since = now
  redis.call('HSET', KEYS[3], root, since)
end
local claim = redis.call('HGET', KEYS[5], root)
if not claim or string.match(claim, '^(%d+):') ~= since then
  redis.call('HSET', KEYS[5], root, since .. '::0')
  redis.call('PERSIST', KEYS[5])
  redis.call('PERSIST', KEYS[6])
  recall(plan, subject)
  ask(plan, subject, 'first')
end
if ARGV[3] ~= '' and redis.call('HGET', KEYS[7], subject) ~= ARGV[3] then
  redis.call('HSET', KEYS[7], subject, ARGV[3])
  ask(plan, subject, 'asked')
end
return { isNew and 1 or 0, createdAt }
