--[[
  Ends the poll of a subject: either says when the next one is, or takes the subject off the schedule.

  KEYS[1] due        zset    subjects that are polled, by the time of their next poll
  KEYS[2] starts     hash    subject -> polls begun since one ended
  KEYS[3] nudged     set     subjects to be polled again at once
  KEYS[4] demand     hash    subject -> rate at which it would be asked for at a price of 1, per second
  KEYS[5] subject    hash    snapshot
  KEYS[6] claims     hash    root -> claim
  KEYS[7] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[8] counts     hash    "<kind>|<status>" -> number of polled subjects
  KEYS[9] total      string  sum of the demand of all subjects
  KEYS[10] seen      hash    subject -> when an answer showed it last (ms)
  KEYS[11] looked    string  whether an exact look-up was asked for
  KEYS[12] own       hash    subject -> when a poll of its own ended last (ms)

  ARGV[1] subject id
  ARGV[2] next poll, ms after now; "" when the subject is finished
  ARGV[3] demand, per second; "" leaves it as it was
  ARGV[4] time for which a finished subject is kept, ms
  ARGV[5] "" at the end of a poll; else the commit of the snapshot by which somebody else finds the subject finished

  Returns the milliseconds until the next poll, or "" when there is none. A nudge that came while the poll ran makes the
  next poll come at once, finished or not. A subject that nobody wants any more is taken off as well.

  Whoever is not the poll changes nothing and gets "kept" where that is not for it to say: the snapshot has changed, a
  poll is under way and ends by itself, or there is a claim that no page serves or that waits for its first answer.
]]
if ARGV[5] ~= '' then
  if redis.call('HGET', KEYS[5], 'commit') ~= ARGV[5] then return 'kept' end
  if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 or redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1 then return 'kept' end
  local held = redis.call('HGETALL', KEYS[6])
  for i = 1, #held, 2 do
    if not string.match(held[i], '^[^|]*|wallet:') or string.sub(held[i + 1], -2) ~= ':1' then return 'kept' end
  end
  -- A look that was asked for is not taken any more, and must not stand in the way of the next.
  redis.call('DEL', KEYS[11])
end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HDEL', KEYS[2], ARGV[1])
local demandBefore = tonumber(redis.call('HGET', KEYS[4], ARGV[1]) or '0')

local wanted, named = false, false
local all = redis.call('HGETALL', KEYS[6])
for i = 1, #all, 2 do
  if redis.call('HGET', KEYS[7], all[i]) == string.match(all[i + 1], '^(%d+):') then
    wanted = true
    named = named or string.sub(all[i], -#ARGV[1] - 1) == '|' .. ARGV[1]
  end
end

local afterMs = ''
if wanted then
  afterMs = redis.call('SREM', KEYS[3], ARGV[1]) == 1 and '0' or ARGV[2]
end

if afterMs == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[4], ARGV[1])
  redis.call('INCRBYFLOAT', KEYS[9], string.format('%.17g', -demandBefore))
  redis.call('SREM', KEYS[3], ARGV[1])
  redis.call('HDEL', KEYS[10], ARGV[1])
  redis.call('HDEL', KEYS[12], ARGV[1])
  local counted = redis.call('HGET', KEYS[5], 'counted')
  if counted then
    if redis.call('HINCRBY', KEYS[8], counted, -1) <= 0 then redis.call('HDEL', KEYS[8], counted) end
    redis.call('HDEL', KEYS[5], 'counted')
  end
  -- What a config names keeps its snapshot, or the next start would see it for the first time again.
  if not named then
    redis.call('PEXPIRE', KEYS[5], ARGV[4])
    redis.call('PEXPIRE', KEYS[6], ARGV[4])
  end
else
  redis.call('HSET', KEYS[12], ARGV[1], string.format('%.0f', nowMs))
  redis.call('ZADD', KEYS[1], string.format('%.0f', nowMs + tonumber(afterMs)), ARGV[1])
  if ARGV[3] ~= '' then
    redis.call('HSET', KEYS[4], ARGV[1], ARGV[3])
    redis.call('INCRBYFLOAT', KEYS[9], string.format('%.17g', tonumber(ARGV[3]) - demandBefore))
  end
end
return afterMs
