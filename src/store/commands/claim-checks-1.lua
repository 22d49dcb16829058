--[[
  Claims checks that are due, under a lease; after its end they are due again. The lease of a check that was claimed again and
  again without an end is longer each time: the check itself may end its processes.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    token          text    names the claims of this call: `<process> <unique>`
    leaseMs        number  length of the lease, ms
    longestWaitMs  number  longest wait of any check, ms: a time further ahead was written by a clock that has jumped
    aheadMs        number  ms by which a due check may be ahead; checks that another process works on are ahead, too
    probeMs        number  ms between two probes of a failing endpoint, and between two reads of an awaited final head
    chains         ...(chain text, most number, endpoints json?)
                           `most` is the limit of its claimed checks; `endpoints` lists its endpoints, none where none is read

  returns
    nowMs    number                    Redis time
    nextMs   number?                   time at which the next check of those chains is due
    claimed  list of (id text, fields hash)  the claimed checks
    heads    list of (chainId text, endpoint text)  endpoints whose final head the caller reads now
]]
-- @include check
local base, token, now = KEYS.checks, ARGV.token, checkNow()
local leaseMs, MOST_DOUBLINGS = tonumber(ARGV.leaseMs), 8
local latest = checkText(now + tonumber(ARGV.longestWaitMs))
local claimed, nextAt = {}, nil
local dueMs = checkText(now + tonumber(ARGV.aheadMs))
local probeMs, heads = tonumber(ARGV.probeMs), {}

-- True when the interval since the last such action at an endpoint has passed; stores the new time.
local function isTime(key, field)
  local last = tonumber(redis.call('HGET', key, field) or '0')
  if last <= now and now - last < probeMs then return false end
  redis.call('HSET', key, field, checkText(now))
  return true
end

-- Makes one check that waits for an endpoint due at times, and all checks of an endpoint that was removed from the config.
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
    -- An error of one check alone is not that of an endpoint.
    if waiting > (name == '' and 1 or 0) and isTime(key, 'probedAt') then
      makeFirstDue(base, chain, failed, checkText(now), 1)
    end
    if open > 0 and isTime(key, 'headAt') then
      heads[#heads + 1] = chain
      heads[#heads + 1] = name
    end
  end
end

for index = 1, #ARGV.chains do
  local due = base .. ':due:' .. ARGV.chains[index].chain
  for _, id in ipairs(redis.call('ZRANGE', due, '(' .. latest, '+inf', 'BYSCORE', 'LIMIT', 0, 100)) do
    redis.call('ZADD', due, latest, id)
  end
  if ARGV.chains[index].endpoints ~= '' then
    local listed = cjson.decode(ARGV.chains[index].endpoints)
    for _, name in ipairs(redis.call('SMEMBERS', base .. ':endpoints:' .. ARGV.chains[index].chain)) do
      probe(ARGV.chains[index].chain, name, name == '' or contains(listed, name))
    end
  end
  for _, id in ipairs(redis.call('ZRANGE', due, '-inf', dueMs, 'BYSCORE', 'LIMIT', 0, ARGV.chains[index].most)) do
    local key = base .. ':of:' .. id
    local state, chain = unpack(redis.call('HMGET', key, 'state', 'chain'))
    if state == 'waiting' and chain == ARGV.chains[index].chain then
      local before = redis.call('HINCRBY', key, 'claims', 1) - 1
      redis.call('ZADD', due, checkText(now + leaseMs * 2 ^ math.min(before, MOST_DOUBLINGS)), id)
      redis.call('HSET', key, 'claim', token)
      redis.call('HSET', base .. ':claimed', id, token)
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
