-- Checks of what was stated about payments. Their keys begin with one base:
--   <base>:of:<id>            hash  the check; `state` is waiting, verified, disputed, unproven or unchecked
--   <base>:due:<chain>        zset  id of a check that waits -> when it is asked next, or when its claim runs out, ms
--   <base>:waiting:<chain>    zset  id of a check that waits -> since when, ms
--   <base>:ended              zset  id of a check that has ended -> when, ms
--   <base>:counts             hash  "<chain>|<state>" -> number of checks
--   <base>:logs:<in or out>|<chain>|<tx>  hash  index of a log -> id of the check that it proved
--   <base>:left:<chain>       set   checks that ended as their chain had left the config
--   <base>:held:<in or out>|<chain>|<tx>  set   checks that ended as they did because of logs that others hold
--
-- A check holds the logs that it took until it ends without them, or is of another transaction. A log that is let go, or taken
-- from its holder, has all that it decided asked anew.
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
  redis.call('SREM', base .. ':left:' .. chain, id)
  countCheck(base, chain, state, -1)
end

local function contains(list, wanted)
  for _, one in ipairs(list) do
    if one == wanted then return true end
  end
  return false
end

-- Has a check that has ended asked anew, now.
local function reopenCheck(base, id)
  local key = base .. ':of:' .. id
  local state, chain = unpack(redis.call('HMGET', key, 'state', 'chain'))
  if not state or state == 'waiting' then return end
  local now = checkText(checkNow())
  unlistCheck(base, id, chain or '', state)
  redis.call('HSET', key, 'state', 'waiting', 'claim', '', 'claims', '0', 'since', now)
  redis.call('HDEL', key, 'endedAt', 'proof')
  redis.call('ZADD', base .. ':due:' .. chain, now, id)
  redis.call('ZADD', base .. ':waiting:' .. chain, now, id)
  countCheck(base, chain, 'waiting', 1)
end

-- Has all asked anew that ended as they did because of who holds the logs of a transaction.
local function reopenHeld(base, tx)
  local held = base .. ':held:' .. tx
  for _, other in ipairs(redis.call('SMEMBERS', held)) do
    if redis.call('HGET', base .. ':of:' .. other, 'tx') == tx then reopenCheck(base, other) end
  end
  redis.call('DEL', held)
end

-- Lets the logs of a transaction that a check holds, but for some, prove others.
local function releaseLogs(base, id, tx, kept)
  local logs, isFree = base .. ':logs:' .. tx, false
  local all = redis.call('HGETALL', logs)
  for i = 1, #all, 2 do
    if all[i + 1] == id and not contains(kept, all[i]) then
      redis.call('HDEL', logs, all[i])
      isFree = true
    end
  end
  if isFree then reopenHeld(base, tx) end
end

-- Whether a check may end as asked: "open"; "gone" where it was restated, has ended, or is another's to end; "taken" where a
-- log that would prove it has proved another meanwhile.
local function mayEndCheck(ending)
  local state, claim = unpack(redis.call('HMGET', ending.base .. ':of:' .. ending.id, 'state', 'claim'))
  if state ~= 'waiting' or claim ~= ending.token then return 'gone' end
  for _, index in ipairs(ending.logs) do
    local owner = redis.call('HGET', ending.base .. ':logs:' .. ending.tx, index)
    if owner and owner ~= ending.id and not contains(ending.from, owner) then return 'taken' end
  end
  return 'open'
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
  if ending.left then redis.call('SADD', base .. ':left:' .. chain, id) end
  local held = base .. ':held:' .. ending.tx
  redis.call('SREM', held, id)
  releaseLogs(base, id, ending.tx, ending.logs)
  if ending.held then
    redis.call('SADD', held, id)
    redis.call('PEXPIRE', held, ending.keep)
  end
  if #ending.logs == 0 then return end
  local logs = base .. ':logs:' .. ending.tx
  for _, index in ipairs(ending.logs) do redis.call('HSET', logs, index, id) end
  redis.call('PEXPIRE', logs, ending.keep)
  if #ending.from == 0 then return end
  for _, other in ipairs(ending.from) do reopenCheck(base, other) end
  reopenHeld(base, ending.tx)
end
