--[[
  Lets a claimed check wait until it is requested again. One that waits for the logs of others lets go of its own, as none of them
  would do: two that want each other's would wait for each other else.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] id of the check
  ARGV[2] token under which it was claimed
  ARGV[3] ms until it is requested again
  ARGV[4] 1 where its endpoints were asked, else 0
  ARGV[5] 1 where it waits for the logs of others, else 0
  ARGV[6] JSON list of { name, outcome, head, until }: what the reading showed of each endpoint (domain/proof/ask-times.ts; the
          members that are null left out); "" where none was read
  ARGV[7...] field, value: what is noted

  Returns 1, or 0 when the claim is lost: then nothing is noted.
]]
-- @include check
local key = KEYS[1] .. ':of:' .. ARGV[1]
local state, claim, chain, tx = unpack(redis.call('HMGET', key, 'state', 'claim', 'chain', 'tx'))
if state ~= 'waiting' or claim ~= ARGV[2] then return 0 end
local base, id, now = KEYS[1], ARGV[1], checkNow()

-- How often in a row the check failed at an endpoint that answered others meanwhile.
local function refusedBy(endpoints)
  local readAt, refused = redis.call('HMGET', key, 'askedAt', 'refused'), 0
  local lastMs, before = tonumber(readAt[1] or '') or now, tonumber(readAt[2] or '') or 0
  for _, endpoint in ipairs(endpoints) do
    if endpoint.outcome == 'failed' then
      local name = base .. ':endpoint:' .. chain .. '|' .. endpoint.name
      local answered, recovered = unpack(redis.call('HMGET', name, 'answeredAt', 'recoveredAt'))
      local count = (tonumber(recovered or '') or 0) > lastMs and 0 or before
      if (tonumber(answered or '') or 0) > lastMs then count = count + 1 end
      refused = math.max(refused, count)
    end
  end
  return refused
end

local SOON_MS, LONGEST_MS = 15000, 900000
local function retryMs(refused)
  if refused <= MOST_REFUSED then return math.min(SOON_MS, 1000 * 2 ^ refused) end
  return math.min(LONGEST_MS, SOON_MS * 2 ^ (refused - MOST_REFUSED))
end

redis.call('HSET', key, 'claim', '', 'claims', '0')
if ARGV[6] ~= '' then
  local endpoints, awaits = cjson.decode(ARGV[6]), ''
  local refused = refusedBy(endpoints)
  endAwaiting(base, id, chain, tx)
  for _, endpoint in ipairs(endpoints) do noteEndpoint(base, chain, endpoint, refused) end
  for _, endpoint in ipairs(endpoints) do
    local name = chain .. '|' .. endpoint.name
    local isFailed = endpoint.outcome == 'failed'
    if isFailed then redis.call('ZADD', base .. ':failed:' .. name, checkText(now + retryMs(refused)), id) end
    if endpoint['until'] then redis.call('ZADD', base .. ':until:' .. name, endpoint['until'], id) end
    if isFailed or endpoint['until'] then
      awaits = awaits .. endpoint.name .. '|'
      redis.call('SADD', base .. ':endpoints:' .. chain, endpoint.name)
    end
  end
  redis.call('HSET', key, 'refused', checkText(refused), 'awaits', awaits)
end
if ARGV[4] == '1' then
  redis.call('HINCRBY', key, 'asked', 1)
  redis.call('HSET', key, 'askedAt', checkText(now))
end
if ARGV[5] == '1' then
  releaseLogs(base, id, tx, {})
  redis.call('SADD', base .. ':wanted:' .. tx, id)
end
for index = 7, #ARGV, 2 do redis.call('HSET', key, ARGV[index], ARGV[index + 1]) end
redis.call('ZADD', base .. ':due:' .. chain, checkText(now + tonumber(ARGV[3])), id)
return 1
