--[[
  Removes checks that ended long ago, a bounded part of them at a time.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] ms before which they ended
  ARGV[2] how many are removed at most

  Returns how many were.
]]
-- @include check
local base, before = KEYS[1], '(' .. ARGV[1]
local ids = redis.call('ZRANGE', base .. ':ended', '-inf', before, 'BYSCORE', 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
  local key = base .. ':of:' .. id
  local state, chain, tx = unpack(redis.call('HMGET', key, 'state', 'chain', 'tx'))
  if state then
    unlistCheck(base, id, chain or '', state)
    forgetLogs(base, id, tx)
    redis.call('DEL', key)
  else
    redis.call('ZREM', base .. ':ended', id)
  end
end
return #ids
