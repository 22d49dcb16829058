--[[
  Tracks a subject by itself, beside the subjects of the config, in one step.

  KEYS
    tracked         hash  subject -> definition
    trackingEnded   zset  subject whose tracking has ended -> time of that, ms
    wanted          hash  subscription key -> time from which it is wanted (ms)
    plan            hash  clock of the plan of the subject's endpointGroup (include/plan.lua)
    claims          hash  subscription key -> claim
    subject         hash  snapshot
    importedQuotes  hash  quote -> its imported data

  ARGV
    subject     text   subject id
    definition  json   JSON that begins with "{"
    quote       text?  imported data of a quote, JSON
    atMs        text?  time of the plan, ms; none for Redis time

  returns
    isNew        flag    false when it was tracked before: then its definition is replaced
    createdAtMs  number  time from which it is tracked, ms
]]
-- @include plan
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
local subject, claimKey = ARGV.subject, '~|' .. ARGV.subject
local now = string.format('%.0f', stampMs(prefixOf(KEYS.subject, subject) .. ':clock'))
local plan = openPlan(KEYS.plan, ARGV.atMs)

local before = redis.call('HGET', KEYS.tracked, subject) or ''
local createdAt = string.match(before, '^{"createdAtMs":(%d+),"removedAtMs":null,')
local isNew = not createdAt
createdAt = createdAt or now
local definition = '{"createdAtMs":' .. createdAt .. ',"removedAtMs":null,' .. string.sub(ARGV.definition, 2)
redis.call('HSET', KEYS.tracked, subject, definition)
redis.call('ZREM', KEYS.trackingEnded, subject)

local since = redis.call('HGET', KEYS.wanted, claimKey)
if not since or not string.match(since, '^%d+$') then
  since = now
  redis.call('HSET', KEYS.wanted, claimKey, since)
end
if redis.call('EXISTS', KEYS.subject) == 0 then restoreCompact(prefixOf(KEYS.subject, subject), subject) end
local claim = redis.call('HGET', KEYS.claims, claimKey)
if not claim or string.match(claim, '^(%d+):') ~= since then
  redis.call('HSET', KEYS.claims, claimKey, since .. '::0')
  recall(plan, subject)
  requestPoll(plan, subject, 'first')
end
-- The next poll of a quote verifies its content, and claims its vault where the definition wants that.
if ARGV.quote ~= '' and (definition ~= before or redis.call('HGET', KEYS.importedQuotes, subject) ~= ARGV.quote) then
  redis.call('HSET', KEYS.importedQuotes, subject, ARGV.quote)
  requestPoll(plan, subject, 'requested')
end
return { isNew and 1 or 0, createdAt }
