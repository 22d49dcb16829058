--[[
  Removes dead letters that died before a time, a bounded number of them, the first to die first.

  KEYS
    dead  zset  the receiver's dead letters

  ARGV
    beforeMs        number  ms; letters that died before it are removed
    most            number  limit of removed letters
    deliveryPrefix  text    prefix of the receiver's delivery keys

  returns number
    Number of removed letters.
]]
local ids = redis.call('ZRANGE', KEYS.dead, '-inf', '(' .. ARGV.beforeMs, 'BYSCORE', 'LIMIT', 0, ARGV.most)
for _, id in ipairs(ids) do
  if redis.call('HGET', ARGV.deliveryPrefix .. id, 'outcome') == 'dead' then redis.call('DEL', ARGV.deliveryPrefix .. id) end
  redis.call('ZREM', KEYS.dead, id)
end
return #ids
