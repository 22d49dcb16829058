--[[
  Claims checks that are due, under a lease that runs out: then they are due again. The lease of one that was claimed again and
  again without an end is longer each time: it may be what ends its processes.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] token      names the claims of this call
  ARGV[2] length of the lease, ms
  ARGV[3] the longest wait of any check, ms: one that stands further ahead was written by a clock that has jumped
  ARGV[4] how far ahead a check may stand to be due, ms; those that another works on stand ahead, too
  ARGV[5] ms between two probes of an endpoint that fails, and between two looks at the final head of one that is waited for
  ARGV[6...] chain, how many of its checks may be claimed, and the JSON list of its endpoints; "" where none is read

  Returns { now, when the next of those chains is due or "", of each claimed check its id and its fields, and each chain and
  endpoint whose final head is to be looked at now }.
]]
-- @include check
local base, token, now = KEYS[1], ARGV[1], checkNow()
local leaseMs, MOST_DOUBLINGS = tonumber(ARGV[2]), 8
local latest = checkText(now + tonumber(ARGV[3]))
local claimed, nextAt = {}, nil
local dueMs = checkText(now + tonumber(ARGV[4]))
local probeMs, heads = tonumber(ARGV[5]), {}

-- Whether it is time again to do something at an endpoint; then that is noted.
local function isTime(key, field)
  local last = tonumber(redis.call('HGET', key, field) or '0')
  if last <= now and now - last < probeMs then return false end
  redis.call('HSET', key, field, checkText(now))
  return true
end

-- Has one of those that wait for an endpoint be due now and then, and all that wait for one that has left the config.
local function probe(chain, name, isListed)
  local place = chain .. '|' .. name
  local failed, untilFinal = base .. ':failed:' .. place, base .. ':until:' .. place
  local waiting, open = redis.call('ZCARD', failed), redis.call('ZCARD', untilFinal)
  local key = base .. ':endpoint:' .. place
  if waiting + open == 0 then
    redis.call('SREM', base .. ':endpoints:' .. chain, name)
  elseif not isListed then
    makeFirstDue(base, chain, failed, '+inf', MOST_DUE)
    makeFirstDue(base, chain, untilFinal, '+inf', MOST_DUE)
  else
    -- The error of one check alone is its own.
    if waiting > (name == '' and 1 or 0) and isTime(key, 'probedAt') then
      makeFirstDue(base, chain, failed, checkText(now), 1)
    end
    if open > 0 and isTime(key, 'headAt') then
      heads[#heads + 1] = chain
      heads[#heads + 1] = name
    end
  end
end

for index = 6, #ARGV, 3 do
  local due = base .. ':due:' .. ARGV[index]
  for _, id in ipairs(redis.call('ZRANGE', due, '(' .. latest, '+inf', 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('ZADD', due, latest, id)
  end
  if ARGV[index + 2] ~= '' then
    local listed = cjson.decode(ARGV[index + 2])
    for _, name in ipairs(redis.call('SMEMBERS', base .. ':endpoints:' .. ARGV[index])) do
      probe(ARGV[index], name, name == '' or contains(listed, name))
    end
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
return { checkText(now), nextAt and checkText(nextAt) or '', claimed, heads }
