--[[
  The pace of a receiver: the number of its attempts, and their times. All processes share it; every move is made here.

  | State    | Attempts                                   | Moves                                                      |
  |----------|--------------------------------------------|------------------------------------------------------------|
  | ok       | what concurrency and rate limit allow      | it requests a wait ─► resting; FAILING_AFTER failures in a |
  |          |                                            | row ─► failing                                             |
  | resting  | none until `notBefore`, then one at a time | success ─► ok; requests again ─► resting, for longer than  |
  |          |                                            | QUIET_MS ─► failing; failures in a row ─► failing          |
  | failing  | one at a time, another delivery each time, | success ─► ok                                              |
  |          | PROBE_FIRST_MS to PROBE_MOST_MS apart: in  |                                                            |
  |          | turns the newest of all and the next older |                                                            |
  | disabled | none, and the relay opens nothing          | its operator ─► enabling                                   |
  |          |                                            | failures had disabled it, and an attempt from before       |
  |          |                                            | succeeds ─► enabling                                       |
  | enabling | none                                       | the relay, with all that was held queued ─► ok             |
  | paused   | none, and the relay opens nothing          | its operator ─► ok; its operator ─► disabled               |

  Any of the first three ─► disabled: a span of nothing but failures, an answer of 410, its operator.
  Any of the first three ─► paused: its operator. What was open stays as it was, and dead letters stay dead.

  Many deliveries may be bad, such as all of one type, and the oldest that wait are just those: the newest of all was mostly not
  tried yet. The newest may all be bad as well.

  A failure counts against the receiver only while it has accepted nothing else since that delivery's first failure: otherwise
  the delivery is bad. The first success after `resting` or `failing` queues all deliveries that wait for another try.

  Reports to the operator (`reported`) follow with hysteresis: `failing` when BREADTH deliveries were refused in a row, or nothing
  was accepted for QUIET_MS, and not within APART_MS of a recovery; `recovered` after SUCCESSES in a row, or when nothing is open
  any more. A success of an attempt that was under way when the receiver was paused counts: it may be the last one.

  Redis's clock can jump. A time further ahead than any that is ever set counts as over, and the span of nothing but failures is
  measured by the confirmed time (`certain`; see store/confirmed-time.ts).

  hash `state`, `notBefore` (ms, of the next attempt), `span` (ms, of the wait until then), `restedAt` (ms, of its last
  request for a wait), `probes` (in a row), `probed` and `probedNewest` (turns of the last deliveries that were tried alone:
  of one in their order, and of the newest), `failures` and `refused` (in a row, and the first ids of those), `refusals` (with
  those that request a wait), `successes` (in a row, while something is reported), `since` (confirmed ms, first failure after
  the last success), `reported`, `recoveredAt`, `lastSuccessAt`, `accepted` (number of all successes), `lastErrorAt`,
  `lastError`, `disabledAt`, `disabledBy`, `pausedAt` (ms), `sequence` (of the operator's events), `slot` (ms, of the next
  attempt under a rate limit).
]]
local FAILING_AFTER = 4
local BREADTH = 3
local QUIET_MS = 600000
local APART_MS = 60000
local SUCCESSES = 5
local PROBE_FIRST_MS = 1000
local PROBE_MOST_MS = 10000
local REST_MOST_MS = 3600000

local function timeMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function whole(number) return string.format('%.0f', number) end

local function isHeld(state) return state == 'disabled' or state == 'enabling' or state == 'paused' end

local function isCautious(state) return state == 'resting' or state == 'failing' end

local function stateOf(receiver) return redis.call('HGET', receiver, 'state') or 'ok' end

-- Returns the number of a stored text; nil for none. Lua reads "nan" and "inf" as numbers, and Redis refuses them as scores.
local function finite(text)
  local number = tonumber(text or '')
  return number and number - number == 0 and number or nil
end

local function numberOf(key, field) return finite(redis.call('HGET', key, field)) end

-- Adds to a number of a hash. Any other value counts as 0: an attempt is recorded with any value in the field.
local function add(key, field, change)
  local sum = redis.pcall('HINCRBY', key, field, change)
  if type(sum) == 'number' then return sum end
  redis.call('HDEL', key, field)
  return redis.call('HINCRBY', key, field, change)
end

-- Wakes the processes that deliver to a receiver. `process` is the one that knows already.
local function wake(wakes, name, process)
  redis.call('XADD', wakes, 'MAXLEN', '~', '10000', '*', 'receiver', name, 'process', process or '')
end

-- As `wake`, where another process sends deliveries (`senders`) and something is `due`. A process that starts needs no wake.
local function wakeOthers(wakes, senders, due, name, process)
  local count = redis.call('ZCARD', senders)
  if count == 0 or (count == 1 and redis.call('ZSCORE', senders, process)) then return end
  if redis.call('ZCARD', due) > 0 then wake(wakes, name, process) end
end

-- Notifies the operator of a move. `pace` is { receiver, events, subject, now }.
local function notify(pace, template, word, by)
  local sequence = whole(add(pace.receiver, 'sequence', 1))
  local event = string.gsub(template, '%%BY%%', by)
  local since = numberOf(pace.receiver, 'since')
  event = string.gsub(event, '"%%SINCE%%"', since and whole(math.floor(since / 1000)) or 'null')
  local from = redis.call('HGET', pace.receiver, 'reported') or 'ok'
  appendOperatorEvent(pace.events, event, { subject = pace.subject, sequence = sequence, word = word, from = from })
end

-- The only place where the state is set.
local function setState(receiver, state)
  redis.call('HSET', receiver, 'state', state)
  if state ~= 'paused' then redis.call('HDEL', receiver, 'pausedAt') end
  if not isCautious(state) then redis.call('HDEL', receiver, 'notBefore', 'span', 'restedAt', 'probes', 'probed', 'probedNewest', 'failures', 'refused') end
end

local function disablePace(pace, by, template)
  setState(pace.receiver, 'disabled')
  notify(pace, template, 'disabled', by)
  redis.call('HSET', pace.receiver, 'reported', 'disabled', 'disabledAt', whole(pace.now), 'disabledBy', by)
  redis.call('HDEL', pace.receiver, 'successes')
end

-- Returns the time of the next attempt, from its stored time and span; 0 where it is none that is ever set.
local function startOf(notBefore, span, now)
  local at = tonumber(notBefore or '') or 0
  if at - now > (tonumber(span or '') or REST_MOST_MS) then return 0 end
  return at
end

local function notBeforeOf(receiver, now)
  local stored = redis.call('HMGET', receiver, 'notBefore', 'span')
  return startOf(stored[1], stored[2], now)
end

-- Returns a stored time that is in the past; nil for a time ahead.
local function inPast(stored, now)
  local at = tonumber(stored or '')
  return at and at <= now and at or nil
end

local function pastOf(receiver, field, now) return inPast(redis.call('HGET', receiver, field), now) end

local function waitFor(pace, ms)
  local at = pace.now + ms
  if notBeforeOf(pace.receiver, pace.now) >= at then return end
  redis.call('HSET', pace.receiver, 'notBefore', whole(at), 'span', whole(ms))
end

-- Sets the time of the next try. An attempt that was under way at the last decision changes nothing.
local function waitForProbe(pace, atLeastMs)
  if pace.now < notBeforeOf(pace.receiver, pace.now) then return waitFor(pace, atLeastMs) end
  local probes = add(pace.receiver, 'probes', 1)
  local interval = math.min(PROBE_FIRST_MS * 2 ^ math.min(probes - 1, 20), PROBE_MOST_MS)
  waitFor(pace, math.max(interval, atLeastMs))
end

-- Parses a number of successes. Any other value, and one that cannot grow, counts as 0.
local function acceptedOf(text)
  local count = finite(text) or 0
  return count >= 0 and count < 1e15 and count or 0
end

-- Records `count` successes. `claimedAt` is the time at which the last of their attempts began; `pending` is the key of what is
-- open. Returns the name that is reported or '', and whether what waits is to be queued at once.
local function paceSucceeded(pace, count, claimedAt, pending, template)
  local receiver = pace.receiver
  local stored = redis.call('HMGET', receiver, 'state', 'restedAt', 'reported', 'since', 'failures', 'refused', 'refusals', 'accepted')
  redis.call('HSET', receiver, 'lastSuccessAt', whole(pace.now), 'accepted', whole(acceptedOf(stored[8]) + count))
  local state = stored[1] or 'ok'
  if state == 'disabled' and redis.call('HGET', receiver, 'disabledBy') == 'failures' then
    if claimedAt <= (numberOf(receiver, 'disabledAt') or 0) then setState(receiver, 'enabling') end
  end
  if state == 'disabled' or state == 'enabling' then return '', false end
  local forward = false
  -- An attempt that was under way when the receiver requested a wait has no meaning for the time after it.
  local isOld = state == 'resting' and claimedAt < (inPast(stored[2], pace.now) or 0)
  if isCautious(state) and not isOld then
    setState(receiver, 'ok')
    forward = true
  end
  local word = ''
  if stored[3] then
    if redis.call('ZCARD', pending) == 0 or add(receiver, 'successes', count) >= SUCCESSES then
      word = 'recovered'
      notify(pace, template, word, 'success')
      redis.call('HDEL', receiver, 'reported', 'successes')
      redis.call('HSET', receiver, 'recoveredAt', whole(pace.now))
    end
  end
  if stored[4] or stored[5] or stored[6] or stored[7] then
    redis.call('HDEL', receiver, 'since', 'failures', 'refused', 'refusals')
  end
  return word, forward
end

local function shouldNotify(pace, distinct)
  local receiver = pace.receiver
  if redis.call('HEXISTS', receiver, 'reported') == 1 then return false end
  if pace.now - (pastOf(receiver, 'recoveredAt', pace.now) or 0) < APART_MS then return false end
  return distinct >= BREADTH or pace.now - (pastOf(receiver, 'lastSuccessAt', pace.now) or 0) >= QUIET_MS
end

-- Records a failure of a `pace` with `certain` (confirmed ms). `failure` is { id, reason, restMs (requested; nil), isGone (410),
-- isBad (the delivery is), spanMs (that disables) }.
-- `templates` are those of `failing` and `disabled`. Returns the name that is reported or '', and whether all that waits is
-- to be queued, for the next attempt may be any of it.
local function paceFailed(pace, failure, templates)
  local receiver = pace.receiver
  redis.call('HSET', receiver, 'lastErrorAt', whole(pace.now), 'lastError', failure.reason)
  local state = stateOf(receiver)
  if isHeld(state) then
    if not failure.isBad then redis.call('HDEL', receiver, 'successes') end
    return '', false
  end
  if state == 'failing' then waitForProbe(pace, failure.restMs or 0) end
  if failure.isBad and not failure.restMs and not failure.isGone then return '', false end
  redis.call('HDEL', receiver, 'successes')
  local since = pastOf(receiver, 'since', pace.certain)
  if not since then redis.call('HSET', receiver, 'since', whole(pace.certain)) end
  local lasts = pace.certain - (since or pace.certain)
  local refusals = add(receiver, 'refusals', 1)
  if failure.isGone or (refusals >= FAILING_AFTER and lasts >= failure.spanMs) then
    disablePace(pace, failure.isGone and 'gone' or 'failures', templates.disabled)
    return 'disabled', true
  end
  local refused = redis.call('HGET', receiver, 'refused') or ''
  local _, distinct = string.gsub(refused, ' ', '')
  local forward = false
  if failure.restMs then
    if state ~= 'failing' then
      waitFor(pace, failure.restMs)
      redis.call('HSET', receiver, 'restedAt', whole(pace.now))
      setState(receiver, lasts >= QUIET_MS and 'failing' or 'resting')
    end
    -- A receiver that has only requested time is not reported.
    if lasts < QUIET_MS then return '', false end
  else
    if distinct < BREADTH and not string.find(refused, failure.id .. ' ', 1, true) then
      refused, distinct = refused .. failure.id .. ' ', distinct + 1
      redis.call('HSET', receiver, 'refused', refused)
    end
    if add(receiver, 'failures', 1) < FAILING_AFTER and state ~= 'failing' then return '', false end
    if state ~= 'failing' then
      setState(receiver, 'failing')
      waitForProbe(pace, 0)
      forward = true
    end
  end
  if not shouldNotify(pace, distinct) then return '', forward end
  notify(pace, templates.failing, 'failing', 'failures')
  redis.call('HSET', receiver, 'reported', 'failing')
  return 'failing', forward
end

-- Returns the allowed attempts: { most, state, cautious, waitMs (until more are; nil), probed and probedNewest (turns of the last
-- that were tried alone; nil), isNewest (the newest is to be tried) }. `underWay` counts the attempts under way.
local function paceAllows(receiver, now, wanted, underWay, intervalMs)
  local stored = redis.call('HMGET', receiver, 'state', 'notBefore', 'span', 'slot', 'probed', 'probedNewest', 'probes')
  local state = stored[1] or 'ok'
  local allowed = { most = 0, state = state, cautious = isCautious(state), probed = finite(stored[5]) }
  allowed.probedNewest = finite(stored[6])
  allowed.isNewest = state == 'failing' and (finite(stored[7]) or 0) % 2 == 1
  if isHeld(state) then return allowed end
  if allowed.cautious then
    local waitMs = startOf(stored[2], stored[3], now) - now
    if waitMs > 0 then
      allowed.waitMs = waitMs
      return allowed
    end
    if underWay > 0 then return allowed end
    wanted = math.min(wanted, 1)
  end
  if intervalMs then
    -- A slot further ahead than one interval comes from a clock that jumped, or a rate that was lower.
    local waitMs = (tonumber(stored[4] or '') or 0) - now
    if waitMs > 0 and waitMs <= intervalMs then
      allowed.waitMs = waitMs
      return allowed
    end
    wanted = math.min(wanted, 1)
  end
  allowed.most = wanted
  return allowed
end
