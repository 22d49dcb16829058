--[[
  The plan of one endpoint group of the upstream: the order of its polls. Every tracked subject has an entry in `:items` and is in
  exactly one place; only the functions here move it.

  | place     | stored in                                          | leaves it                                               |
  |-----------|----------------------------------------------------|--------------------------------------------------------|
  | resting   | :resting, by the time from which it is allowed     | at that time, for its lane (fair, first or requested)   |
  | fair      | :fair, by virtual time; by its longest wait, where | claimed: smallest virtual time, or overdue              |
  |           | it has one, :bound (wallets) or :latest (others)   |                                                         |
  | first     | :first, by the time at which it was named          | claimed, oldest first                                   |
  | requested | :requested, by the time at which it was requested  | claimed, oldest first                                   |
  | spare     | :spare, or :spareWallets for wallets, by the time  | claimed where nothing else waits, or within a           |
  |           | from which it is allowed: its subscriptions are    | twentieth of the budget; recalled to fair or first      |
  |           | no longer in the config (store/suspensions.ts)     | when it is wanted again, or no more                     |
  | failing   | :failing, by the time of its next try              | claimed, all failing ones within a tenth of the budget  |
  | suspect   | :suspects, by the time of its next try             | claimed, one at a time                                  |
  | claimed   | :claims and :leases, renewed by the process that   | started by a worker; or its lease ends, at the latest   |
  |           | sent it on                                         | when its process is proven gone: back                   |
  | started   | :claims and :leases, renewed by its process        | ended: resting, failing or gone; or its lease ends, as  |
  |           |                                                    | above: back, or suspect where its process is gone the   |
  |           |                                                    | second time in a row                                    |

  A subject may also have an alarm (:alarms, by time): then it moves to requested, from any place; not in spare. :polled:<kind>
  holds the time of the last successful poll of each (Redis time), or of the begin of its tracking.

  Overdue subjects get three fifths of the budget while anything else waits: two of them for wallets, one for others, where
  both wait. Of the rest, urgent (first, requested) and fair subjects get half each while both wait, and so do first and requested.
  An unused share goes to the others. Beside urgent subjects, the fair lane waits only where virtual time has come to it:
  otherwise subjects that were just polled would share with those that never were. At a cold start virtual time moves evenly
  to the place at which the first polled wallets are due, and they are not overdue, until all have been polled once.

  Times are ms on the plan's own clock: Redis time, but never backward. `offset` compensates a jump of Redis's clock back, or a
  failover to a server that is behind, so that nothing waits for the lost time.
]]
local PLAN = {
  -- Slots are a little further apart than the budget requires: it holds in any second, also with jitter.
  SHARE = 0.97,
  LEASE = 8000,
  -- Time for which a claim may be on its way to a worker without a renewal. It is shorter: a lost reply of Redis leaves claims
  -- without jobs, and no other process polls a claimed member.
  CLAIM_LEASE = 3000,
  -- Process of a claim whose own process was proven gone (return-polls-1.lua).
  GONE = 'gone',
  -- A member that rests for longer than its item states was put there by a wrong clock.
  CLOCK_SLACK = 5000,
  -- After this time without a script of any process, leases have not ended because of their processes.
  GAP = 5000,
  -- They get their time again then; not again soon, or processes that live for seconds would hold each other's for ever.
  GRACE_EVERY = 60000,
  FAILING_SHARE = 0.1,
  -- Members removed from the config are polled with the rest of the budget; with this share where nothing remains, so that no
  -- tracked member is without polls.
  SPARE_SHARE = 0.05,
  -- Where failing subjects succeed at every fourth try, the failure is not theirs.
  FAILING_SHARE_RECOVERING = 0.5,
  LONGEST_SUSPENSION = 300000,
  -- Time over which the price is a mean: members that were polled together are due together again, so that virtual time moves
  -- in leaps. It has at least this number of seconds, and of rounds over all wallets.
  MEAN_SECONDS = 10,
  MEAN_ROUNDS = 0.25,
  -- Somewhat more than the need of wallets that are all overdue after two rounds, so that it stays at two.
  OVERDUE_SHARE = 0.6,
  -- Share of wallets in that, while others are overdue as well.
  BOUND_SHARE = 2 / 3,
  EARLY_ROUNDS = 1.25,
  -- Wait of a wallet without known data, in virtual seconds.
  ANEW_SECONDS = 19,
  -- Longest wait for the first poll of a newly tracked subject without known data.
  LATEST_ANEW = 600000,
}

local function text(number) return string.format('%.3f', number) end

-- Scores that most polls write are whole ms: a sorted set of up to 128 members is a list of texts, through which Redis parses every
-- score that is not whole.
local function wholeMs(number) return string.format('%.0f', number) end

-- Parses a stored number; `default` for any other text: a foreign value must not stop a plan.
local function number(stored, default)
  local value = tonumber(stored or '')
  if not value or value ~= value or math.abs(value) == math.huge then return default end
  return value
end

-- Runs a command with many values, an even number at a time: Lua passes some thousands at most.
local function withAll(command, key, values)
  for from = 1, #values, 1000 do redis.call(command, key, unpack(values, from, math.min(from + 999, #values))) end
end

-- Adds scores and members, in turn, to a sorted set: with NX those that are not in it yet, with XX only the others.
local function zaddAll(key, mode, values)
  for from = 1, #values, 1000 do redis.call('ZADD', key, mode, unpack(values, from, math.min(from + 999, #values))) end
end

-- Returns the scores of members of a sorted set in their order, each as text; false for none.
local function scoresOf(key, members)
  local scores = {}
  for from = 1, #members, 1000 do
    local some = redis.call('ZMSCORE', key, unpack(members, from, math.min(from + 999, #members)))
    for _, score in ipairs(some) do scores[#scores + 1] = score end
  end
  return scores
end

local PLAN_FIELDS = { 'offset', 'last', 'v', 'next', 'budget', 'graceUntil' }

-- Opens a plan. The values of `more` fields of its hash are read with it, as `more`.
local function openPlan(key, at, more)
  local fields = { unpack(PLAN_FIELDS) }
  for _, field in ipairs(more or {}) do fields[#fields + 1] = field end
  local stored = redis.call('HMGET', key, unpack(fields))
  local now
  if at and at ~= '' then
    now = tonumber(at)
  else
    local time = redis.call('TIME')
    now = time[1] * 1000 + time[2] / 1000
  end
  local plan = {
    key = key,
    redisNow = now,
    offset = number(stored[1], 0),
    last = number(stored[2], now),
    v = number(stored[3], 0),
    next = number(stored[4], 0),
    budget = math.max(1e-6, number(stored[5], 1)),
    graceUntil = number(stored[6], 0),
    more = { unpack(stored, #PLAN_FIELDS + 1, #fields) },
  }
  plan.now = now + plan.offset
  if plan.now < plan.last then
    plan.offset = plan.offset + plan.last - plan.now
    plan.now = plan.last
  end
  return plan
end

-- Item: lane, virtual time, latest (0: none), failures in a row, time at which a poll of its own ended, ms of its rest, requested
-- while claimed.
local function readItem(stored)
  if not stored then return nil end
  local lane, v, latest, fails, own, rest, again = string.match(stored, '^(%a+) (%S+) (%S+) (%d+) (%S+) (%S+) ([01])$')
  if not lane then return { lane = 'fair', v = 0, latest = 0, fails = 0, own = 0, rest = 0, again = false } end
  return {
    lane = lane,
    v = number(v, 0),
    latest = number(latest, 0),
    fails = math.min(tonumber(fails), 1000),
    own = number(own, 0),
    rest = number(rest, 0),
    again = again == '1',
  }
end

local function writeItem(item)
  return string.format(
    '%s %.6f %.3f %d %.3f %.0f %s', item.lane, item.v, item.latest, item.fails, item.own, item.rest, item.again and '1' or '0'
  )
end

local function getItem(plan, member)
  return readItem(redis.call('HGET', plan.key .. ':items', member))
end

local function setItem(plan, member, item)
  redis.call('HSET', plan.key .. ':items', member, writeItem(item))
end

-- Gives all leases their time again where no process could renew them.
local function beginGrace(plan)
  if plan.now - plan.last > PLAN.GAP and plan.now > plan.graceUntil + PLAN.GRACE_EVERY then
    plan.graceUntil = plan.now + PLAN.LEASE
  end
  plan.graceUntil = math.min(plan.graceUntil, plan.now + PLAN.LEASE)
end

local function kindOf(member) return string.match(member, '^([^:]*):') end

-- Wallets wait at most for rounds over all of them. That always fits, however many others are overdue.
local function latestPlace(member) return kindOf(member) == 'wallet' and ':bound' or ':latest' end

-- Returns the subject of a member: itself, the wallet of which it is a page, or the transfer that the open source reports too.
local function subjectOf(member)
  return string.match(member, '^page:[^:]*:(.+)$') or string.match(member, '^open%-status:(.+)$') or member
end

local function sparePlace(member) return kindOf(member) == 'wallet' and ':spareWallets' or ':spare' end

-- Puts members, each with its item, into their lanes.
local function enterAll(plan, entries)
  local lanes, fair = {}, {}
  local function put(places, place, score, member)
    local values = places[place] or {}
    values[#values + 1] = score
    values[#values + 1] = member
    places[place] = values
  end
  for _, entry in ipairs(entries) do
    local member, item = entry.member, entry.item
    if item.lane == 'spare' then
      put(lanes, sparePlace(member), text(plan.now), member)
    elseif item.lane == 'first' or item.lane == 'requested' then
      put(lanes, ':' .. item.lane, text(plan.now), member)
    else
      put(fair, ':fair', string.format('%.6f', math.min(item.v, plan.v + 1e6)), member)
      if item.latest > 0 then put(fair, latestPlace(member), wholeMs(item.latest), member) end
    end
  end
  for place, values in pairs(lanes) do zaddAll(plan.key .. place, 'NX', values) end
  for place, values in pairs(fair) do withAll('ZADD', plan.key .. place, values) end
end

local function enter(plan, member, item) enterAll(plan, { { member = member, item = item } }) end

local WAITING = {
  ':resting', ':fair', ':bound', ':latest', ':first', ':requested', ':spare', ':spareWallets', ':failing', ':suspects', ':alarms',
}

local function leave(plan, member)
  for _, place in ipairs(WAITING) do redis.call('ZREM', plan.key .. place, member) end
end

local function polledKey(plan, member) return plan.key .. ':polled:' .. (kindOf(member) or '') end

-- Makes a member rest for some ms in `place`: failing members have a place of their own. The item stores the ms, so that a time
-- from a wrong clock can be detected.
local function rest(plan, member, item, ms, place)
  item.rest = ms
  setItem(plan, member, item)
  if item.lane == 'spare' and not place then
    redis.call('ZADD', plan.key .. sparePlace(member), text(plan.now + ms), member)
  elseif ms > 0 then
    redis.call('ZADD', plan.key .. (place or ':resting'), wholeMs(plan.now + ms), member)
  else
    enter(plan, member, item)
  end
end

-- Begins to track a member, which is allowed after `restMs`; a tracked one stays where it is. Pages of a wallet in spare budget
-- are polled with spare budget as well.
local function track(plan, member, item, restMs)
  local subject = subjectOf(member)
  local wallet = subject ~= member and getItem(plan, subject)
  if wallet and wallet.lane == 'spare' then item.lane = 'spare' end
  if redis.call('HSETNX', plan.key .. ':items', member, writeItem(item)) == 0 then return false end
  redis.call('ZADD', polledKey(plan, member), 'NX', wholeMs(plan.redisNow), member)
  rest(plan, member, item, restMs)
  return true
end

local function isClaimed(plan, member) return redis.call('HEXISTS', plan.key .. ':claims', member) == 1 end

-- `latest` is 0 where there is no longest wait: in a lane of its own it is not needed.
local function newItem(lane, v, latest)
  return { lane = lane, v = v, latest = latest or 0, fails = 0, own = 0, rest = 0, again = false }
end

-- Requests a poll of a member as soon as the budget allows, also of an untracked one; `lane` is requested or first. A failing or
-- suspected member retains its time; a claimed member is polled again after its poll.
local function requestPoll(plan, member, lane)
  local item = getItem(plan, member)
  if not item then return track(plan, member, newItem(lane, plan.v), 0) end
  if isClaimed(plan, member) then
    item.again = true
    setItem(plan, member, item)
    return true
  end
  if redis.call('ZSCORE', plan.key .. ':failing', member) or redis.call('ZSCORE', plan.key .. ':suspects', member) then
    if item.lane ~= 'spare' then item.lane = lane end
    setItem(plan, member, item)
    return false
  end
  if item.lane == 'spare' then
    redis.call('ZADD', plan.key .. sparePlace(member), 'XX', text(plan.now), member)
    return true
  end
  redis.call('ZREM', plan.key .. ':resting', member)
  redis.call('ZREM', plan.key .. ':fair', member)
  redis.call('ZREM', plan.key .. latestPlace(member), member)
  if item.lane == 'requested' and redis.call('ZSCORE', plan.key .. ':requested', member) then return true end
  redis.call('ZREM', plan.key .. ':first', member)
  item.lane = lane
  setItem(plan, member, item)
  enter(plan, member, item)
  return true
end

-- Returns a member from spare budget to usual polls.
local function recall(plan, member)
  local item = getItem(plan, member)
  if not item or item.lane ~= 'spare' then return end
  item.lane, item.v, item.latest = 'fair', plan.v, plan.now + PLAN.LATEST_ANEW
  setItem(plan, member, item)
  if redis.call('ZREM', plan.key .. sparePlace(member), member) == 1 then enter(plan, member, item) end
end

local function removeMember(plan, member)
  leave(plan, member)
  redis.call('HDEL', plan.key .. ':items', member)
  redis.call('HDEL', plan.key .. ':claims', member)
  redis.call('HDEL', plan.key .. ':crashes', member)
  redis.call('ZREM', plan.key .. ':leases', member)
  redis.call('ZREM', polledKey(plan, member), member)
end

-- Claim: token, process, started (2: its lease has ended while its process may still be alive), virtual time of the claim, slot,
-- lane, lateness in ms.
local function readClaim(stored)
  if not stored then return nil end
  local token, process, started, v, slot, lane, late = string.match(stored, '^(%S+) (%S+) ([012]) (%S+) (%S+) (%a+) (%S+)$')
  if not token then return nil end
  return {
    token = token,
    process = process,
    started = started ~= '0',
    doubted = started == '2',
    v = number(v, 0),
    slot = number(slot, 0),
    lane = lane,
    late = number(late, 0),
  }
end

local function writeClaim(claim)
  return string.format(
    '%s %s %s %.6f %.3f %s %.3f',
    claim.token, claim.process, claim.doubted and '2' or claim.started and '1' or '0', claim.v, claim.slot, claim.lane, claim.late
  )
end

-- True for a member that was under way twice in a row when its process ended: it may have ended the process, and is polled
-- alone. One time does not count: processes are killed for many reasons.
local function isSuspect(plan, member)
  return tonumber(redis.call('HGET', plan.key .. ':crashes', member) or '0') >= 2
end

local function endClaim(plan, member)
  redis.call('HDEL', plan.key .. ':claims', member)
  redis.call('ZREM', plan.key .. ':leases', member)
end

-- Returns the ms between two slots of the budget; `pace` is the share of the budget that may be used now.
local function slotStep(plan, pace) return 1000 / (PLAN.SHARE * plan.budget * pace) end

-- Returns the latest possible slot: the slots of all claims, one after the other. No script sets a later one.
local function lastSlot(plan, step)
  return plan.now + 1000 + (2 + redis.call('HLEN', plan.key .. ':claims')) * step
end

-- Bounds a slot by the latest possible one. Beside any number of claims a near slot is possible.
local function boundSlot(plan, slot, step)
  if slot <= plan.now + 1000 + 2 * step then return slot end
  return math.min(slot, lastSlot(plan, step))
end

-- Assigns another slot to a poll that missed its own.
local function slotAnew(plan, step)
  local slot = math.max(plan.now, boundSlot(plan, plan.next, step))
  plan.next = slot + step
  redis.call('HSET', plan.key, 'next', text(plan.next))
  return slot
end

-- Counts the wallets. Those removed from the config do not count.
local function countWallets(plan)
  return math.max(0, redis.call('ZCARD', plan.key .. ':polled:wallet') - redis.call('ZCARD', plan.key .. ':spareWallets'))
end

-- Returns the ms for polling every wallet once with the whole budget. `wallets` is their number at the last claim.
local function roundOf(plan, wallets) return number(wallets, 0) * slotStep(plan, 1) end

-- True when all claims of a subject come from pages of wallets, and are served.
local function isServedByPages(claimsKey)
  local all = redis.call('HGETALL', claimsKey)
  for i = 1, #all, 2 do
    if not string.match(all[i], '^[^|]*|wallet:') or string.sub(all[i + 1], -2) ~= ':1' then return false end
  end
  return true
end

-- Covers a member that something else has just shown: it needs no poll of its own for `by.ms`. It is polled itself at least hourly:
-- its cover may have stopped moving. A member that waits for an answer stays as it is. Once pages no longer show it, it waits for
-- `by.virtual` seconds from now on, as after a poll of its own, and for `by.latestMs` at most: otherwise all members gone from a
-- page would come first, all at once. A named subject is polled itself all the same. `by.rests` is the end of its rest, if any.
local function cover(plan, member, claimsKey, by)
  local ms, rests = by.ms, by.rests
  if by.alarmMs ~= '' and redis.call('HEXISTS', plan.key .. ':items', member) == 1 then
    redis.call('ZADD', plan.key .. ':alarms', text(plan.now + tonumber(by.alarmMs)), member)
  end
  if rests and tonumber(rests) > plan.now + ms / 2 then return end
  if not rests and not redis.call('ZSCORE', plan.key .. ':fair', member) then return end
  local item = getItem(plan, member)
  if not item or item.lane ~= 'fair' or item.fails > 0 or not isServedByPages(claimsKey) then return end
  if item.own == 0 then item.own = plan.now end
  item.v = plan.v + by.virtual
  local untilMs = math.min(plan.now + ms, item.own + 3600000)
  if untilMs <= plan.now then return end
  item.latest = untilMs + by.latestMs
  redis.call('ZREM', plan.key .. ':fair', member)
  redis.call('ZREM', plan.key .. latestPlace(member), member)
  rest(plan, member, item, untilMs - plan.now)
end
