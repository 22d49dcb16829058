--[[
  Removes a subject whose tracking has ended: the events that were committed for it are gone as well.

  KEYS
    tracked         hash  subject -> definition
    trackingEnded   zset  subject whose tracking has ended -> time of that, ms
    importedQuotes  hash  quote -> its imported data
    verdicts        hash  quote -> verdict on its signature

  ARGV
    subject     text  subject id
    isImported  flag  true when the config imports the quote as well

  returns flag
    False where it is tracked again.
]]
local definition = redis.call('HGET', KEYS.tracked, ARGV.subject) or ''
redis.call('ZREM', KEYS.trackingEnded, ARGV.subject)
if string.match(definition, '^{"createdAtMs":%d+,"removedAtMs":null,') then return 0 end
redis.call('HDEL', KEYS.tracked, ARGV.subject)
if ARGV.isImported ~= '1' then
  redis.call('HDEL', KEYS.importedQuotes, ARGV.subject)
  redis.call('HDEL', KEYS.verdicts, ARGV.subject)
end
return 1
