--[[
  Where receivers stand: what a round of the relay needs to know of them.

  KEYS[1] cursors    hash    receiver -> entry

  ARGV[1] prefix of receivers' states
  ARGV[2] prefix of their lists of open deliveries
  ARGV[3...] receivers

  Returns per receiver its cursor ("" for none), its state and the number of its open deliveries.
]]
local found = {}
for index = 3, #ARGV do
  local name = ARGV[index]
  found[#found + 1] = redis.call('HGET', KEYS[1], name) or ''
  found[#found + 1] = redis.call('HGET', ARGV[1] .. name, 'state') or 'ok'
  found[#found + 1] = string.format('%.0f', redis.call('ZCARD', ARGV[2] .. name))
end
return found
