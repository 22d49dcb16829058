--[[
  Reads the state of receivers for a round of the relay.

  KEYS
    cursors  hash  receiver -> entry

  ARGV
    receiverPrefix  text     prefix of keys of the states of receivers
    pendingPrefix   text     prefix of their lists of open deliveries
    receivers       ...text

  returns list of (cursor text, state text, open number)
    Cursor ("" for none), state, and number of open deliveries of each receiver.
]]
local found = {}
for index = 1, #ARGV.receivers do
  local name = ARGV.receivers[index]
  found[#found + 1] = redis.call('HGET', KEYS.cursors, name) or ''
  found[#found + 1] = redis.call('HGET', ARGV.receiverPrefix .. name, 'state') or 'ok'
  found[#found + 1] = string.format('%.0f', redis.call('ZCARD', ARGV.pendingPrefix .. name))
end
return found
