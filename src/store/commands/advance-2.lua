--[[
  Moves the cursors of receivers along the event log; only the process that holds the lease may.

  KEYS
    cursors     hash    receiver -> entry
    relayLease  string  fencing token of the relay

  ARGV
    fence      text     fencing token
    entry      text
    receivers  ...text

  returns flag
    False when another process relays now.
]]
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return 0 end
for index = 1, #ARGV.receivers do redis.call('HSET', KEYS.cursors, ARGV.receivers[index], ARGV.entry) end
return 1
