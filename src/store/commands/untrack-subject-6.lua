--[[
  Ends the tracking of a subject that is tracked by itself. Its definition stays for the events that are committed.

  KEYS[1] tracked    hash    subject -> definition
  KEYS[2] ended      zset    subject whose tracking was ended -> when, ms
  KEYS[3] wanted     hash    root -> since when it is wanted (ms)
  KEYS[4] since      hash    root -> the same moment on the upstream's clock
  KEYS[5] plan       hash    clock of the plan of the subject's endpointGroup (include/plan.lua)
  KEYS[6] subject    hash    snapshot

  ARGV[1] subject id
  ARGV[2] only where its tracking has come to its end: nothing was stored of it since this moment (ms); "" in any case

  Returns 1; 0 when it was not tracked, or has not come to its end. What only this named is taken off the schedule by its
  next poll.
]]
-- @include confirmed-time
-- @include ended
local subject, root = ARGV[1], '~|' .. ARGV[1]
local definition = redis.call('HGET', KEYS[1], subject) or ''
local createdAt = string.match(definition, '^{"createdAtMs":(%d+),"removedAtMs":null,')
if not createdAt then return 0 end
local isPlanned = redis.call('HEXISTS', KEYS[5] .. ':items', subject) == 1
if ARGV[2] ~= '' then
  local observedAt = tonumber(redis.call('HGET', KEYS[6], 'observedAtMs') or '') or 0
  local changedAt = tonumber(redis.call('ZSCORE', rootOf(KEYS[6], subject) .. ':changed', subject) or '') or 0
  if isPlanned or math.max(observedAt, changedAt, tonumber(createdAt)) >= tonumber(ARGV[2]) then return 0 end
end

local now = string.format('%.0f', stampMs(rootOf(KEYS[6], subject) .. ':clock'))
local rest = string.sub(definition, string.find(definition, ',"removedAtMs":null,', 1, true) + #',"removedAtMs":null,')
redis.call('HSET', KEYS[1], subject, '{"createdAtMs":' .. createdAt .. ',"removedAtMs":' .. now .. ',' .. rest)
redis.call('ZADD', KEYS[2], now, subject)
redis.call('HDEL', KEYS[3], root)
redis.call('HDEL', KEYS[4], root)
if not isPlanned then noteEnded(KEYS[6], subject) end
return 1
