--[[
  Removes checks that ended long ago, a bounded part of them at a time.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    beforeMs  number  ms; checks that ended before it are removed
    most      number  limit of removed checks

  returns number
    Number of removed checks.
]]
-- @include check
local base, before = KEYS.checks, '(' .. ARGV.beforeMs
local ids = redis.call('ZRANGE', base .. ':ended', '-inf', before, 'BYSCORE', 'LIMIT', 0, ARGV.most)
for _, id in ipairs(ids) do
  local key = base .. ':of:' .. id
  local state, chain, tx = unpack(redis.call('HMGET', key, 'state', 'chain', 'tx'))
  if state then
    unlistCheck(base, id, chain or '', state)
    removeLogs(base, id, tx)
    redis.call('DEL', key)
  else
    redis.call('ZREM', base .. ':ended', id)
  end
end
return #ids
