--[[
  Postpones a claimed check until it is due again. A check that waits for the logs of others releases its own: otherwise two
  checks that want each other's logs would wait for each other.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    id         text    id of the check
    token      text    token of its claim
    inMs       number  ms until it is due again
    isRead     flag    true when its endpoints were requested
    isForLogs  flag    true when it waits for the logs of others
    endpoints  json?   list of { name, outcome, head, until }: observations of each endpoint (domain/proof/recheck-times.ts;
                       without the members that are null); none where none was read
    fields     ...(name text, value text)  fields to store

  returns flag
    False when the claim is lost: then nothing is stored.
]]
-- @include check
local key = KEYS.checks .. ':of:' .. ARGV.id
local state, claim, chain, tx = unpack(redis.call('HMGET', key, 'state', 'claim', 'chain', 'tx'))
if state ~= 'waiting' or claim ~= ARGV.token then return 0 end
local base, id, now = KEYS.checks, ARGV.id, checkNow()

-- Returns how often in a row the check failed at an endpoint that answered others meanwhile.
local function refusedBy(endpoints)
  local readAt, refused = redis.call('HMGET', key, 'polledAt', 'refused'), 0
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
redis.call('HDEL', base .. ':claimed', id)
if ARGV.endpoints ~= '' then
  local endpoints, awaits = cjson.decode(ARGV.endpoints), ''
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
if ARGV.isRead == '1' then
  redis.call('HINCRBY', key, 'polls', 1)
  redis.call('HSET', key, 'polledAt', checkText(now))
end
if ARGV.isForLogs == '1' then
  releaseLogs(base, id, tx, {})
  redis.call('SADD', base .. ':wanted:' .. tx, id)
end
for index = 1, #ARGV.fields do redis.call('HSET', key, ARGV.fields[index].name, ARGV.fields[index].value) end
redis.call('ZADD', base .. ':due:' .. chain, checkText(now + tonumber(ARGV.inMs)), id)
return 1
