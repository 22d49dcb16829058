--[[
  Moves the cursors of receivers along the event log; only the process that holds the lease may.

  KEYS[1] cursors    hash    receiver -> entry
  KEYS[2] lease      string  fencing token of the relay

  ARGV[1] fencing token
  ARGV[2] entry
  ARGV[3...] receivers

  Returns 1, or 0 when another process relays now.
]]
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
for index = 3, #ARGV do redis.call('HSET', KEYS[1], ARGV[index], ARGV[2]) end
return 1
