--[[
  Moves the cursors of receivers along the event log; only the process that holds the lease may. A cursor that was moved meanwhile,
  as another process has stored events behind it as dropped, stays.

  KEYS
    cursors     hash    receiver -> entry
    relayLease  string  fencing token of the relay

  ARGV
    fence      text     fencing token
    from       text     their cursor
    to         text
    receivers  ...text

  returns flag
    False when another process relays now.
]]
-- @include cursor
if redis.call('GET', KEYS.relayLease) ~= ARGV.fence then return 0 end
for index = 1, #ARGV.receivers do
  local name = ARGV.receivers[index]
  if cursorOf(KEYS.cursors, name) == ARGV.from then redis.call('HSET', KEYS.cursors, name, ARGV.to) end
end
return 1
