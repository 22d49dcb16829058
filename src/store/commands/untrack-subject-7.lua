--[[
  Ends the tracking of a subject that is tracked by itself. Its definition stays for the events that are committed.

  KEYS[1] tracked    hash    subject -> definition
  KEYS[2] ended      zset    subject whose tracking was ended -> when, ms
  KEYS[3] wanted     hash    root -> since when it is wanted (ms)
  KEYS[4] since      hash    root -> the same moment on the upstream's clock
  KEYS[5] plan       hash    clock of the plan of the subject's surface (include/plan.lua)
  KEYS[6] claims     hash    root -> claim
  KEYS[7] subject    hash    snapshot

  ARGV[1] subject id
  ARGV[2] ms for which a subject that nobody tracks is kept
  ARGV[3] only where its tracking has come to its end: nothing was stored of it since this moment (ms); "" in any case

  Returns 1; 0 when it was not tracked, or has not come to its end. What only this named is taken off the schedule by its
  next poll.
]]
-- @include claims
local subject, root = ARGV[1], '~|' .. ARGV[1]
local definition = redis.call('HGET', KEYS[1], subject) or ''
local createdAt = string.match(definition, '^{"createdAtMs":(%d+),"removedAtMs":null,')
if not createdAt then return 0 end
local isPlanned = redis.call('HEXISTS', KEYS[5] .. ':items', subject) == 1
if ARGV[3] ~= '' then
  local observedAt = tonumber(redis.call('HGET', KEYS[7], 'observedAtMs') or '') or 0
  if isPlanned or math.max(observedAt, tonumber(createdAt)) >= tonumber(ARGV[3]) then return 0 end
end

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local rest = string.sub(definition, string.find(definition, ',"removedAtMs":null,', 1, true) + #',"removedAtMs":null,')
redis.call('HSET', KEYS[1], subject, '{"createdAtMs":' .. createdAt .. ',"removedAtMs":' .. now .. ',' .. rest)
redis.call('ZADD', KEYS[2], now, subject)
redis.call('HDEL', KEYS[3], root)
redis.call('HDEL', KEYS[4], root)
if isPlanned then return 1 end
-- Who else wants it keeps what is known of it.
if #currentClaims(KEYS[6], KEYS[3]) > 0 then return 1 end
redis.call('PEXPIRE', KEYS[6], ARGV[2])
redis.call('PEXPIRE', KEYS[7], ARGV[2])
return 1
