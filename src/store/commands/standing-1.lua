--[[
  Where receivers stand: what a round of the relay needs to know of them.

  KEYS
    cursors  hash  receiver -> entry

  ARGV
    receiverPrefix  text     prefix of receivers' states
    pendingPrefix   text     prefix of their lists of open deliveries
    receivers       ...text

  returns list of (cursor text, state text, open number)
    For each receiver its cursor ("" for none), its state and the number of its open deliveries.
]]
local found = {}
for index = 1, #ARGV.receivers do
  local name = ARGV.receivers[index]
  found[#found + 1] = redis.call('HGET', KEYS.cursors, name) or ''
  found[#found + 1] = redis.call('HGET', ARGV.receiverPrefix .. name, 'state') or 'ok'
  found[#found + 1] = string.format('%.0f', redis.call('ZCARD', ARGV.pendingPrefix .. name))
end
return found
