--[[
  Takes a replay further along the event log; only the process that holds the lease may.

  KEYS[1] replay     hash    the replay: see store/replays.ts
  KEYS[2] open       zset    replays whose deliveries are not all opened
  KEYS[3] lease      string  fencing token of the relay

  ARGV[1] fencing token
  ARGV[2] replay id
  ARGV[3] entry up to which its deliveries are opened
  ARGV[4] entries read
  ARGV[5] "1" when the range is at its end, else ""

  Returns 1, or 0 when another process relays now or the replay's time is over.
]]
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('ZREM', KEYS[2], ARGV[2])
  return 0
end
redis.call('HSET', KEYS[1], 'cursor', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'read', ARGV[4])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[1], 'state', 'opened')
  redis.call('ZREM', KEYS[2], ARGV[2])
end
return 1
