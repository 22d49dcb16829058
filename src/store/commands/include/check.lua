-- Checks of what was stated about payments. Their keys begin with one base:
--   <base>:of:<id>            hash  the check; `state` is waiting, verified, disputed, unproven or unchecked
--   <base>:due:<chain>        zset  id of a check that waits -> when it is asked next, or when its claim runs out, ms
--   <base>:waiting:<chain>    zset  id of a check that waits -> since when, ms
--   <base>:ended              zset  id of a check that has ended -> when, ms
--   <base>:counts             hash  "<chain>|<state>" -> number of checks
--   <base>:logs:<payment>|<chain>|<tx>  hash  index of a log -> id of the check that it proved
local function checkNow()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function checkText(number)
  return string.format('%.0f', number)
end

local function countCheck(base, chain, state, by)
  local field = chain .. '|' .. state
  if redis.call('HINCRBY', base .. ':counts', field, by) <= 0 then redis.call('HDEL', base .. ':counts', field) end
end

-- Takes a check off the lists that it stands in.
local function unlistCheck(base, id, chain, state)
  redis.call('ZREM', base .. ':due:' .. chain, id)
  redis.call('ZREM', base .. ':waiting:' .. chain, id)
  redis.call('ZREM', base .. ':ended', id)
  countCheck(base, chain, state, -1)
end

-- Whether a check may end as asked: "open"; "gone" where it was restated, has ended, or is another's to end; "taken" where a
-- log that would prove it has proved another.
local function mayEndCheck(ending)
  local state, claim = unpack(redis.call('HMGET', ending.base .. ':of:' .. ending.id, 'state', 'claim'))
  if state ~= 'waiting' or claim ~= ending.token then return 'gone' end
  for _, index in ipairs(ending.logs) do
    local owner = redis.call('HGET', ending.base .. ':logs:' .. ending.tx, index)
    if owner and owner ~= ending.id then return 'taken' end
  end
  return 'open'
end

-- Lets the logs that a check took prove others: it is of another transaction from now on.
local function releaseLogs(base, id, tx)
  local logs = base .. ':logs:' .. tx
  local all = redis.call('HGETALL', logs)
  for i = 1, #all, 2 do
    if all[i + 1] == id then redis.call('HDEL', logs, all[i]) end
  end
end

-- Ends a check that may.
local function endCheck(ending)
  local base, id, now = ending.base, ending.id, checkText(checkNow())
  local key = base .. ':of:' .. id
  local chain = redis.call('HGET', key, 'chain') or ''
  unlistCheck(base, id, chain, 'waiting')
  redis.call('HSET', key, 'state', ending.state, 'claim', '', 'endedAt', now, 'tx', ending.tx, unpack(ending.fields))
  redis.call('ZADD', base .. ':ended', now, id)
  countCheck(base, chain, ending.state, 1)
  if #ending.logs == 0 then return end
  local logs = base .. ':logs:' .. ending.tx
  for _, index in ipairs(ending.logs) do redis.call('HSET', logs, index, id) end
  redis.call('PEXPIRE', logs, ending.keep)
end
