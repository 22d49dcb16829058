--[[
  Makes the checks due that processes had claimed which are gone. A check that was claimed three times without an end stays
  until the end of its lease, which is longer each time: it may have ended its processes.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    processes  ...text

  returns number
    Number of checks that are due.
]]
-- @include check
local base, count = KEYS.checks, 0
local isGone = {}
for index = 1, #ARGV.processes do isGone[ARGV.processes[index]] = true end
local claimed = redis.call('HGETALL', base .. ':claimed')
for index = 1, #claimed, 2 do
  local id, token = claimed[index], claimed[index + 1]
  if isGone[string.match(token, '^%S+')] then
    redis.call('HDEL', base .. ':claimed', id)
    local key = base .. ':of:' .. id
    local claim, claims, chain = unpack(redis.call('HMGET', key, 'claim', 'claims', 'chain'))
    if claim == token and chain and (tonumber(claims or '') or 0) < 3 then
      redis.call('HSET', key, 'claim', '')
      redis.call('ZADD', base .. ':due:' .. chain, 'XX', checkText(checkNow()), id)
      count = count + 1
    end
  end
end
return count
