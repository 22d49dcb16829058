--[[
  Moves a replay along the event log; only the process that holds the lease may.

  KEYS
    replay      hash    the replay: see store/replays.ts
    replays     zset    replays whose deliveries are not all opened
    relayLease  string  fencing token of the relay

  ARGV
    fence    text    fencing token
    id       text    replay id
    cursor   text    entry up to which its deliveries are opened
    read     number  number of entries read
    isAtEnd  flag    true at the end of the range

  returns flag
    False when another process relays now or the replay's time is over.
]]
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return 0 end
if redis.call('EXISTS', KEYS.replay) == 0 then
  redis.call('ZREM', KEYS.replays, ARGV.id)
  return 0
end
redis.call('HSET', KEYS.replay, 'cursor', ARGV.cursor)
redis.call('HINCRBY', KEYS.replay, 'read', ARGV.read)
if ARGV.isAtEnd == '1' then
  redis.call('HSET', KEYS.replay, 'state', 'opened')
  redis.call('ZREM', KEYS.replays, ARGV.id)
end
return 1
