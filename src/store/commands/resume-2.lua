--[[
  Takes the enabling of a receiver one step further; only the process that holds the lease may.

  KEYS[1] receiver   hash    state of the receiver: see store/receivers.ts
  KEYS[2] lease      string  fencing token of the relay

  ARGV[1] fencing token
  ARGV[2] begin: its dead letters are open again and no job is left of before, so that attempts may be made;
          end: all that was held is queued, so that the cursor may go on

  Returns 1, or 0 when another process relays now or the receiver was disabled meanwhile.
]]
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
if ARGV[2] == 'end' then return redis.call('HDEL', KEYS[1], 'resuming') end
if redis.call('HGET', KEYS[1], 'state') ~= 'enabling' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'ok', 'resuming', '1')
redis.call('HDEL', KEYS[1], 'since', 'failures', 'disabledAt', 'disabledBy')
return 1
