--[[
  Ends the tracking of a subject that is tracked by itself. Its definition stays for its committed events.

  KEYS
    tracked        hash  subject -> definition
    trackingEnded  zset  subject whose tracking has ended -> time of that, ms
    wanted         hash  subscription key -> time from which it is wanted (ms)
    since          hash  subscription key -> the same time on the upstream's clock
    plan           hash  clock of the plan of the subject's endpointGroup (include/plan.lua)
    subject        hash  snapshot

  ARGV
    subject      text     subject id
    idleSinceMs  number?  requires that its tracking has come to its end: nothing was stored of it since this time (ms); none
                          for no such condition

  returns flag
    False when it was not tracked, or has not come to its end. The next poll of a subject that only this named takes it
    off the schedule.
]]
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
local subject, claimKey = ARGV.subject, '~|' .. ARGV.subject
local definition = redis.call('HGET', KEYS.tracked, subject) or ''
local createdAt = string.match(definition, '^{"createdAtMs":(%d+),"removedAtMs":null,')
if not createdAt then return 0 end
local isPlanned = redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 1
if ARGV.idleSinceMs ~= '' then
  local observedAt = tonumber(redis.call('HGET', KEYS.subject, 'observedAtMs') or '') or 0
  local changedAt = tonumber(redis.call('ZSCORE', prefixOf(KEYS.subject, subject) .. ':changed', subject) or '') or 0
  if isPlanned or math.max(observedAt, changedAt, tonumber(createdAt)) >= tonumber(ARGV.idleSinceMs) then return 0 end
end

local now = string.format('%.0f', stampMs(prefixOf(KEYS.subject, subject) .. ':clock'))
local rest = string.sub(definition, string.find(definition, ',"removedAtMs":null,', 1, true) + #',"removedAtMs":null,')
redis.call('HSET', KEYS.tracked, subject, '{"createdAtMs":' .. createdAt .. ',"removedAtMs":' .. now .. ',' .. rest)
redis.call('ZADD', KEYS.trackingEnded, now, subject)
redis.call('HDEL', KEYS.wanted, claimKey)
redis.call('HDEL', KEYS.since, claimKey)
if not isPlanned then
  restoreCompact(prefixOf(KEYS.subject, subject), subject)
  noteEnded(KEYS.subject, subject)
end
return 1
