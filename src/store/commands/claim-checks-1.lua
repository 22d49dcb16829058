--[[
  Claims checks that are due, under a lease that runs out: then they are due again. The lease of one that was claimed again and
  again without an end is longer each time: it may be what ends its processes.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] token      names the claims of this call
  ARGV[2] length of the lease, ms
  ARGV[3] the longest wait of any check, ms: one that stands further ahead was written by a clock that has jumped
  ARGV[4] how far ahead a check may stand to be due, ms; those that another works on stand ahead, too
  ARGV[5...] chain, and how many of its checks may be claimed

  Returns { now, when the next of those chains is due or "", and of each claimed check its id and its fields }.
]]
-- @include check
local base, token, now = KEYS[1], ARGV[1], checkNow()
local leaseMs, MOST_DOUBLINGS = tonumber(ARGV[2]), 8
local latest = checkText(now + tonumber(ARGV[3]))
local claimed, nextAt = {}, nil
local dueMs = checkText(now + tonumber(ARGV[4]))
for index = 5, #ARGV, 2 do
  local due = base .. ':due:' .. ARGV[index]
  for _, id in ipairs(redis.call('ZRANGE', due, '(' .. latest, '+inf', 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('ZADD', due, latest, id)
  end
  for _, id in ipairs(redis.call('ZRANGE', due, '-inf', dueMs, 'BYSCORE', 'LIMIT', 0, ARGV[index + 1])) do
    local key = base .. ':of:' .. id
    local state, chain = unpack(redis.call('HMGET', key, 'state', 'chain'))
    if state == 'waiting' and chain == ARGV[index] then
      local before = redis.call('HINCRBY', key, 'claims', 1) - 1
      redis.call('ZADD', due, checkText(now + leaseMs * 2 ^ math.min(before, MOST_DOUBLINGS)), id)
      redis.call('HSET', key, 'claim', token)
      claimed[#claimed + 1] = id
      claimed[#claimed + 1] = redis.call('HGETALL', key)
    else
      redis.call('ZREM', due, id)
    end
  end
  local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
  local at = tonumber(first[2])
  if at and (not nextAt or at < nextAt) then nextAt = at end
end
return { checkText(now), nextAt and checkText(nextAt) or '', claimed }
