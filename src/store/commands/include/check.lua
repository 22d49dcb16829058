-- Checks of statements about payments. Their keys begin with one base:
--   <base>:of:<id>            hash  the check; `state` is waiting, verified, disputed, unproven or unchecked
--   <base>:due:<chain>        zset  id of a check that waits -> time at which it is due, or its claim ends, ms
--   <base>:waiting:<chain>    zset  id of a check that waits -> time from which it waits, ms
--   <base>:claimed            hash  id of a claimed check -> token of the claim, `<process> <unique>`
--   <base>:ended              zset  id of a check that has ended -> time of its end, ms (include/confirmed-time.lua)
--   <base>:counts             hash  "<chain>|<state>" -> number of checks
--   <base>:logs:<in or out>|<chain>|<tx>  hash  index of a log -> id of the check that it proved
--   <base>:left:<chain>       set   checks that ended because their chain was removed from the config
--   <base>:held:<in or out>|<chain>|<tx>  set   checks whose end was decided by logs that others hold
--   <base>:wanted:<in or out>|<chain>|<tx>  set   checks that wait for logs that others hold
--   <base>:endpoints:<chain>  set   names of endpoints that checks wait for; "" is no endpoint: checks that ended in an error
--   <base>:failed:<chain>|<endpoint>  zset  id of a check that waits for its answer -> time from which it may be read, ms
--   <base>:until:<chain>|<endpoint>   zset  id of a check that waits for its final head -> the number of the block
--   <base>:endpoint:<chain>|<endpoint>  hash  failures in a row; times of its last answer, recovery and probe, ms
--
-- Reasons of a wait, and its ends beside the time in due:
--   it waits for              | it is due at once when
--   --------------------------|------------------------------------------------------------------------------------
--   an endpoint that failed   | the endpoint answers another check: two for each answer; and one every 10 s as a probe
--   an endpoint's final head  | a response, or the watch of the head every 10 s, shows that it has reached the block
--   the error of a check      | another check of the chain ends without one, as for an endpoint
--   a check of the same log   | that check ends
--   the check of its funding  | that check ends
-- At most 16 checks of a chain are made due at once: so an endpoint that fails again never holds up the workers.
--
-- A check that fails where others are answered waits longer each time. An endpoint that failed three times in a row and
-- answers again ends that: its failures were not those of the checks.
--
-- A check holds its logs until it ends without them, or is of another transaction. All checks that a log has decided are reopened
-- when it is released, or claimed from its holder.

-- One time for the whole script: a check that it makes due is due to it.
local time = redis.call('TIME')
local startedMs = time[1] * 1000 + math.floor(time[2] / 1000)
local function checkNow()
  return startedMs
end

local function checkText(number)
  return string.format('%.0f', number)
end

local function countCheck(base, chain, state, by)
  local field = chain .. '|' .. state
  if redis.call('HINCRBY', base .. ':counts', field, by) <= 0 then redis.call('HDEL', base .. ':counts', field) end
end

-- Ends all waits of a check beside its time.
local function endAwaiting(base, id, chain, tx)
  local key = base .. ':of:' .. id
  for name in string.gmatch(redis.call('HGET', key, 'awaits') or '', '([^|]*)|') do
    redis.call('ZREM', base .. ':failed:' .. chain .. '|' .. name, id)
    redis.call('ZREM', base .. ':until:' .. chain .. '|' .. name, id)
  end
  redis.call('HDEL', key, 'awaits')
  if tx then redis.call('SREM', base .. ':wanted:' .. tx, id) end
end

-- Makes a waiting check that no process works on due now.
local function makeCheckDue(base, id, chain, now)
  local state, claim, its = unpack(redis.call('HMGET', base .. ':of:' .. id, 'state', 'claim', 'chain'))
  if state ~= 'waiting' or claim ~= '' or its ~= chain then return end
  redis.call('ZADD', base .. ':due:' .. chain, 'LT', checkText(now), id)
end

-- Makes the first checks of a list due, up to `most`, and up to the limit of checks that are due at once.
local MOST_DUE = 16
local function makeFirstDue(base, chain, list, upTo, most)
  local now = checkNow()
  local free = MOST_DUE - redis.call('ZCOUNT', base .. ':due:' .. chain, '-inf', checkText(now))
  if free < most then most = free end
  if most <= 0 then return end
  for _, id in ipairs(redis.call('ZRANGE', list, '-inf', upTo, 'BYSCORE', 'LIMIT', 0, most)) do
    redis.call('ZREM', list, id)
    makeCheckDue(base, id, chain, now)
  end
end

-- Number of failures of a check where others are answered before they count as its own, and number of failures in a row that
-- count as those of the endpoint.
local MOST_REFUSED, STREAK = 5, 3

-- Records the result of a response of an endpoint, and makes other checks due by it. `refused` counts the refusals of the check.
local function noteEndpoint(base, chain, endpoint, refused)
  local now, name = checkNow(), chain .. '|' .. endpoint.name
  local key, failed = base .. ':endpoint:' .. name, base .. ':failed:' .. name
  if endpoint.outcome == 'failed' then
    if refused < MOST_REFUSED then redis.call('HINCRBY', key, 'streak', 1) end
  elseif endpoint.outcome == 'absent' then
    makeFirstDue(base, chain, failed, checkText(now), 1)
  else
    local streak = tonumber(redis.call('HGET', key, 'streak') or '0')
    redis.call('HSET', key, 'streak', '0', 'answeredAt', checkText(now))
    if streak >= STREAK then
      redis.call('HSET', key, 'recoveredAt', checkText(now))
      -- All may be read again, in the order in which they wait.
      if redis.call('ZCOUNT', failed, checkText(now), '+inf') > 0 then
        redis.call('ZUNIONSTORE', failed, 1, failed, 'WEIGHTS', 0.5)
      end
    end
    makeFirstDue(base, chain, failed, checkText(now), 2)
  end
  if endpoint.head then
    makeFirstDue(base, chain, base .. ':until:' .. name, endpoint.head, MOST_DUE)
  end
end

local function unlistCheck(base, id, chain, state)
  endAwaiting(base, id, chain, redis.call('HGET', base .. ':of:' .. id, 'tx'))
  redis.call('ZREM', base .. ':due:' .. chain, id)
  redis.call('HDEL', base .. ':claimed', id)
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

-- Reopens an ended check, due now.
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

-- Reopens all checks whose end was decided by the holders of the logs of a transaction.
local function reopenHeld(base, tx)
  local held = base .. ':held:' .. tx
  for _, other in ipairs(redis.call('SMEMBERS', held)) do
    if redis.call('HGET', base .. ':of:' .. other, 'tx') == tx then reopenCheck(base, other) end
  end
  redis.call('DEL', held)
end

-- Makes all checks due that wait for logs of a transaction.
local function wakeWanting(base, tx)
  local wanted = base .. ':wanted:' .. tx
  for _, other in ipairs(redis.call('SMEMBERS', wanted)) do
    makeCheckDue(base, other, redis.call('HGET', base .. ':of:' .. other, 'chain'), checkNow())
  end
  redis.call('DEL', wanted)
end

-- Releases the logs of a transaction that a check holds, other than `except`: they may prove others.
local function releaseLogs(base, id, tx, except)
  local logs, isFree = base .. ':logs:' .. tx, false
  local all = redis.call('HGETALL', logs)
  for i = 1, #all, 2 do
    if all[i + 1] == id and not contains(except, all[i]) then
      redis.call('HDEL', logs, all[i])
      isFree = true
    end
  end
  if not isFree then return end
  reopenHeld(base, tx)
  wakeWanting(base, tx)
end

-- Removes the logs of a transaction that a removed check holds. Its decisions for others stay.
local function removeLogs(base, id, tx)
  if not tx then return end
  redis.call('SREM', base .. ':held:' .. tx, id)
  local logs = base .. ':logs:' .. tx
  local all = redis.call('HGETALL', logs)
  for i = 1, #all, 2 do
    if all[i + 1] == id then redis.call('HDEL', logs, all[i]) end
  end
end

-- Whether a check may end as requested: "open"; "gone" where it was restated, has ended, or is another's to end; "used" where a
-- log that would prove it has proved another meanwhile.
local function mayEndCheck(ending)
  local state, claim = unpack(redis.call('HMGET', ending.base .. ':of:' .. ending.id, 'state', 'claim'))
  if state ~= 'waiting' or claim ~= ending.token then return 'gone' end
  for _, index in ipairs(ending.logs) do
    local owner = redis.call('HGET', ending.base .. ':logs:' .. ending.tx, index)
    if owner and owner ~= ending.id and not contains(ending.from, owner) then return 'used' end
  end
  return 'open'
end

-- Makes checks due that wait for the proof of funding of a check.
local function wakeFunded(base, id)
  local subject, payment = string.match(id, '^(.*)|([^|]*)$')
  if payment ~= 'source' then return end
  for _, other in ipairs({ subject .. '|destination', subject .. '|refund' }) do
    local because, chain = unpack(redis.call('HMGET', base .. ':of:' .. other, 'because', 'chain'))
    if because == 'funding' then makeCheckDue(base, other, chain, checkNow()) end
  end
end

-- Ends a check that may end. Needs include/confirmed-time.lua before it.
local function endCheck(ending)
  local base, id, now = ending.base, ending.id, checkText(checkNow())
  local key = base .. ':of:' .. id
  local chain = redis.call('HGET', key, 'chain') or ''
  local refused = tonumber(redis.call('HGET', key, 'refused') or '0')
  unlistCheck(base, id, chain, 'waiting')
  redis.call('HSET', key, 'state', ending.state, 'claim', '', 'endedAt', now, 'tx', ending.tx, unpack(ending.fields))
  local clock = string.sub(base, 1, #base - #':checks') .. ':clock'
  redis.call('ZADD', base .. ':ended', checkText(stampMs(clock)), id)
  countCheck(base, chain, ending.state, 1)
  for _, endpoint in ipairs(ending.endpoints) do noteEndpoint(base, chain, endpoint, refused) end
  wakeWanting(base, ending.tx)
  wakeFunded(base, id)
  if ending.left then redis.call('SADD', base .. ':left:' .. chain, id) end
  local held = base .. ':held:' .. ending.tx
  redis.call('SREM', held, id)
  releaseLogs(base, id, ending.tx, ending.logs)
  if ending.held then redis.call('SADD', held, id) end
  if #ending.logs == 0 then return end
  local logs = base .. ':logs:' .. ending.tx
  for _, index in ipairs(ending.logs) do redis.call('HSET', logs, index, id) end
  if #ending.from == 0 then return end
  for _, other in ipairs(ending.from) do reopenCheck(base, other) end
  reopenHeld(base, ending.tx)
end
