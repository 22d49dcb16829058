--[[
  Removes dead letters that died before a time, a bounded number of them, the first to die first.

  KEYS
    dead  zset  the receiver's dead letters

  ARGV
    beforeMs        number  ms before which they died
    most            number  how many are removed at most
    deliveryPrefix  text    prefix of the receiver's delivery keys

  returns number
    How many were removed.
]]
local ids = redis.call('ZRANGE', KEYS.dead, '-inf', '(' .. ARGV.beforeMs, 'BYSCORE', 'LIMIT', 0, ARGV.most)
for _, id in ipairs(ids) do
  if redis.call('HGET', ARGV.deliveryPrefix .. id, 'outcome') == 'dead' then redis.call('DEL', ARGV.deliveryPrefix .. id) end
  redis.call('ZREM', KEYS.dead, id)
end
return #ids
