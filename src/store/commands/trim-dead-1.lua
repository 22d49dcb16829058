--[[
  Removes dead letters that died before a time, a bounded number of them, the first to die first.

  KEYS[1] dead       zset    the receiver's dead letters

  ARGV[1] ms before which they died
  ARGV[2] how many are removed at most
  ARGV[3] prefix of the receiver's delivery keys

  Returns how many were.
]]
local ids = redis.call('ZRANGE', KEYS[1], '-inf', '(' .. ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  if redis.call('HGET', ARGV[3] .. id, 'outcome') == 'dead' then redis.call('DEL', ARGV[3] .. id) end
  redis.call('ZREM', KEYS[1], id)
end
return #ids
