--[[
  What a poll needs to know before its request, read at one moment.

  KEYS[1] subject    hash    snapshot
  KEYS[2] claims     hash    root -> claim
  KEYS[3] commit     string  the commit counter
  KEYS[4] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[5] due        zset    subjects that are polled
  KEYS[6] starts     hash    subject -> polls begun since one ended
  KEYS[7] nudged     set     subjects to be polled again at once
  KEYS[8] seen       hash    subject -> when an answer showed it last (ms)

  ARGV[1] subject id
  ARGV[2] "1" for the poll of the subject itself, "0" for a page or a look that must not count as one

  Returns { as of, seconds, microseconds, starts, due or "", snapshot fields as a flat list, claims as a flat list,
            seen or "" }.
  Only claims whose root is still wanted are returned; the others are removed.
]]
local time = redis.call('TIME')
local starts = 0
if ARGV[2] == '1' then
  starts = redis.call('HINCRBY', KEYS[6], ARGV[1], 1)
  redis.call('SREM', KEYS[7], ARGV[1])
end
local claims = {}
local all = redis.call('HGETALL', KEYS[2])
for i = 1, #all, 2 do
  local at = redis.call('HGET', KEYS[4], all[i])
  -- A claim of another shape is made anew for what a config names; a page makes its own anew.
  if at and not string.match(all[i + 1], '^%d+:%-?%d*:[01]$') and string.sub(all[i], -#ARGV[1] - 1) == '|' .. ARGV[1] then
    all[i + 1] = at .. '::0'
    redis.call('HSET', KEYS[2], all[i], all[i + 1])
  end
  if at == string.match(all[i + 1], '^(%d+):') then
    claims[#claims + 1] = all[i]
    claims[#claims + 1] = all[i + 1]
  else
    redis.call('HDEL', KEYS[2], all[i])
  end
end
return {
  redis.call('GET', KEYS[3]) or '0',
  time[1],
  time[2],
  starts,
  redis.call('ZSCORE', KEYS[5], ARGV[1]) or '',
  redis.call('HGETALL', KEYS[1]),
  claims,
  redis.call('HGET', KEYS[8], ARGV[1]) or '',
}
