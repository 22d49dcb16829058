--[[
  Stores events without a receiver, and moves the entry up to which they are counted. An entry that another process moved
  meanwhile stays, so that each event is counted once.

  KEYS
    unmatchedPlace  string  entry of the event log
    unmatched       zset    "<entry>|<reason>", all with score 0: the entry's numbers are padded, so bytes order by them
    relayLease      string  fencing token of the relay

  ARGV
    fence    text     fencing token
    from     text     entry after which the caller has read, "0-0" for the beginning
    to       text     entry up to which they are counted now
    most     number   limit of stored events: beyond it the oldest are removed
    members  ...text

  returns flag
    False when another process relays now, or has counted these events.
]]
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return 0 end
if (redis.call('GET', KEYS.unmatchedPlace) or '0-0') ~= ARGV.from then return 0 end
redis.call('SET', KEYS.unmatchedPlace, ARGV.to)
for index = 1, #ARGV.members do redis.call('ZADD', KEYS.unmatched, 0, ARGV.members[index]) end
if #ARGV.members > 0 then redis.call('ZREMRANGEBYRANK', KEYS.unmatched, 0, -1 - tonumber(ARGV.most)) end
return 1
