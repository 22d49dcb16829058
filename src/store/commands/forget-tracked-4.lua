--[[
  Removes a subject whose tracking was ended: the events that were committed for it are gone as well.

  KEYS[1] tracked    hash    subject -> definition
  KEYS[2] ended      zset    subject whose tracking was ended -> when, ms
  KEYS[3] imported     hash    quote -> what was imported of it
  KEYS[4] verdicts   hash    quote -> what was found out about its signature

  ARGV[1] subject id
  ARGV[2] "1" where the config hands the quote over as well

  Returns 1; 0 where it is tracked again.
]]
local definition = redis.call('HGET', KEYS[1], ARGV[1]) or ''
redis.call('ZREM', KEYS[2], ARGV[1])
if string.match(definition, '^{"createdAtMs":%d+,"removedAtMs":null,') then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
if ARGV[2] ~= '1' then
  redis.call('HDEL', KEYS[3], ARGV[1])
  redis.call('HDEL', KEYS[4], ARGV[1])
end
return 1
