--[[
  The plan of one endpoint group of the upstream: which subject is polled next. Every tracked subject has an entry in `:items`
  and stands in exactly one place; only the functions here move it.

  | place    | kept in                                            | leaves it                                             |
  |----------|----------------------------------------------------|-------------------------------------------------------|
  | resting  | :resting, by the time from which it is allowed     | at that time, for its lane (fair, first or asked)     |
  | fair     | :fair, by virtual time; by its longest wait, where | claimed: smallest virtual time, or overdue            |
  |          | it has one, :bound (wallets) or :latest (others)   |                                                       |
  | first    | :first, by the time at which it was named          | claimed, oldest first                                 |
  | asked    | :asked, by the time at which it was requested      | claimed, oldest first                                 |
  | spare    | :spare, or :spareWallets for wallets, by the time  | claimed where nothing else waits, or within a         |
  |          | from which it is allowed: who wants it has left    | twentieth of the budget; recalled to fair or first    |
  |          | the config (store/suspensions.ts)                  | when it is wanted again, or by nobody                 |
  | failing  | :failing, by the time of its next try              | claimed, all failing ones within a tenth of the budget|
  | suspect  | :suspects, by the time of its next try             | claimed, one at a time                                |
  | claimed  | :claims and :leases, renewed by the process that sent it | taken by a worker; or its lease runs out: back        |
  |          | on                                                 |                                                       |
  | taken    | :claims and :leases, renewed by its process        | ended: resting, failing or gone; or its lease runs    |
  |          |                                                    | out: back, or suspect where it is so the second time  |
  |          |                                                    | in a row that its process is gone                     |

  A subject may also have an alarm (:alarms, by time): then it moves to asked, wherever it waits; not in spare. :polled:<kind> holds when
  each was last polled with success (Redis time), or since when it is tracked.

  Of the budget, what is overdue gets three fifths while anything else waits: two of them wallets, one the others, where
  both are. Of the rest, what is urgent
  (first, asked) and what is fair get half each while both wait, and so do first and asked. What one does not use the others
  get. Beside what is urgent, the fair lane waits only where virtual time has come to it: else who has just been polled
  would share with those that never were. At a cold start virtual time goes evenly to where wallets
  are due that were polled first, and they are not overdue, until all have been polled once.

  Times are ms on the plan's own clock: Redis time, but never backward. A jump of Redis's clock back, or a failover to a
  server that is behind, is taken up by `offset`, so that nothing waits for the time that was lost.
]]
local PLAN = {
  -- Slots are a little further apart than the budget says: what jitter moves together stays within any second.
  SHARE = 0.97,
  LEASE = 8000,
  -- For how long a claim may be on its way to a worker without a word. Shorter: a reply of Redis that is lost leaves claims
  -- without jobs, and who is claimed is polled by nobody.
  CLAIM_LEASE = 3000,
  -- What rests for longer than it says was put there by a clock that was wrong.
  CLOCK_SLACK = 5000,
  -- After so long without any script of any process, leases have not run out because of their processes.
  GAP = 5000,
  -- They get their time again then; not again soon, or processes that live for seconds would keep each other's for ever.
  GRACE_EVERY = 60000,
  FAILING_SHARE = 0.1,
  -- What left the config is polled with what is left of the budget; with so much of it where nothing is, for nothing that
  -- is tracked stands still.
  SPARE_SHARE = 0.05,
  -- Where failing subjects succeed at every fourth try, it is not they that fail.
  FAILING_SHARE_RECOVERING = 0.5,
  LONGEST_SUSPENSION = 300000,
  -- Over how long the price is a mean: what was polled together comes up together again, so that virtual time runs in
  -- leaps. At least so many seconds, and so many rounds over all wallets.
  MEAN_SECONDS = 10,
  MEAN_ROUNDS = 0.25,
  -- Somewhat more than wallets need that are all overdue after two rounds, so that it stays at two.
  OVERDUE_SHARE = 0.6,
  -- Of that, while others are overdue as well.
  BOUND_SHARE = 2 / 3,
  EARLY_ROUNDS = 1.25,
  -- What a wallet of which nothing is known waits, in virtual seconds.
  ANEW_SECONDS = 19,
  -- The longest wait for a first poll of what is tracked anew, and nothing is known of.
  LATEST_ANEW = 600000,
}

local function text(number) return string.format('%.3f', number) end

-- A number as it is stored; `default` for what is none: what something else wrote must not stop a plan.
local function number(stored, default)
  local value = tonumber(stored or '')
  if not value or value ~= value or math.abs(value) == math.huge then return default end
  return value
end

-- Has a command take many values, an even number at a time: Lua hands over some thousands at most.
local function withAll(command, key, values)
  for from = 1, #values, 1000 do redis.call(command, key, unpack(values, from, math.min(from + 999, #values))) end
end

local function openPlan(key, at)
  local stored = redis.call('HMGET', key, 'offset', 'last', 'v', 'next', 'budget', 'graceUntil')
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
  }
  plan.now = now + plan.offset
  if plan.now < plan.last then
    plan.offset = plan.offset + plan.last - plan.now
    plan.now = plan.last
  end
  return plan
end

-- Item: lane, virtual time, latest (0: none), failures in a row, when a poll of its own ended, for how long it rests, asked
-- for while claimed.
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

-- Gives all leases their time again where nobody could renew them.
local function beginGrace(plan)
  if plan.now - plan.last > PLAN.GAP and plan.now > plan.graceUntil + PLAN.GRACE_EVERY then
    plan.graceUntil = plan.now + PLAN.LEASE
  end
  plan.graceUntil = math.min(plan.graceUntil, plan.now + PLAN.LEASE)
end

local function kindOf(member) return string.match(member, '^([^:]*):') end

-- Wallets wait for rounds over all of them at most, which always fits; however many others are overdue, it stays so.
local function latestPlace(member) return kindOf(member) == 'wallet' and ':bound' or ':latest' end

-- What of the plan a member is about: itself, or the wallet of which it is a page.
local function subjectOf(member) return string.match(member, '^page:[^:]*:(.+)$') or member end

local function sparePlace(member) return kindOf(member) == 'wallet' and ':spareWallets' or ':spare' end

-- Puts an item into its lane.
local function enter(plan, member, item)
  if item.lane == 'spare' then
    redis.call('ZADD', plan.key .. sparePlace(member), 'NX', text(plan.now), member)
    return
  end
  if item.lane == 'first' or item.lane == 'asked' then
    redis.call('ZADD', plan.key .. ':' .. item.lane, 'NX', text(plan.now), member)
    return
  end
  redis.call('ZADD', plan.key .. ':fair', string.format('%.6f', math.min(item.v, plan.v + 1e6)), member)
  if item.latest > 0 then redis.call('ZADD', plan.key .. latestPlace(member), text(item.latest), member) end
end

local WAITING = {
  ':resting', ':fair', ':bound', ':latest', ':first', ':asked', ':spare', ':spareWallets', ':failing', ':suspects', ':alarms',
}

-- Takes a member out of every place in which it may wait.
local function leave(plan, member)
  for _, place in ipairs(WAITING) do redis.call('ZREM', plan.key .. place, member) end
end

local function polledKey(plan, member) return plan.key .. ':polled:' .. (kindOf(member) or '') end

-- Lets a member rest for some ms; `place` is where, as what fails has a place of its own. The item says for how long, so
-- that a time which a wrong clock made can be reported.
local function rest(plan, member, item, ms, place)
  item.rest = ms
  setItem(plan, member, item)
  if item.lane == 'spare' and not place then
    redis.call('ZADD', plan.key .. sparePlace(member), text(plan.now + ms), member)
  elseif ms > 0 then
    redis.call('ZADD', plan.key .. (place or ':resting'), text(plan.now + ms), member)
  else
    enter(plan, member, item)
  end
end

-- Begins to track a member; one that is tracked stays where it is. `restMs`: from when on it is allowed. The pages of a wallet
-- that is polled with spare budget are as well.
local function track(plan, member, item, restMs)
  local subject = subjectOf(member)
  local wallet = subject ~= member and getItem(plan, subject)
  if wallet and wallet.lane == 'spare' then item.lane = 'spare' end
  if redis.call('HSETNX', plan.key .. ':items', member, writeItem(item)) == 0 then return false end
  redis.call('ZADD', polledKey(plan, member), 'NX', text(plan.redisNow), member)
  rest(plan, member, item, restMs)
  return true
end

local function isClaimed(plan, member) return redis.call('HEXISTS', plan.key .. ':claims', member) == 1 end

-- `latest` is 0 where there is no longest wait: in a lane of its own it is not needed.
local function newItem(lane, v, latest)
  return { lane = lane, v = v, latest = latest or 0, fails = 0, own = 0, rest = 0, again = false }
end

-- Has a member looked at as soon as the budget allows, also one that is not tracked; `lane` is asked or first. What fails or
-- is suspected keeps its time; what is claimed comes again when its poll has ended.
local function ask(plan, member, lane)
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
  if item.lane == 'asked' and redis.call('ZSCORE', plan.key .. ':asked', member) then return true end
  redis.call('ZREM', plan.key .. ':first', member)
  item.lane = lane
  setItem(plan, member, item)
  enter(plan, member, item)
  return true
end

-- Has a member that is polled with spare budget polled as usual.
local function recall(plan, member)
  local item = getItem(plan, member)
  if not item or item.lane ~= 'spare' then return end
  item.lane, item.v, item.latest = 'fair', plan.v, plan.now + PLAN.LATEST_ANEW
  setItem(plan, member, item)
  if redis.call('ZREM', plan.key .. sparePlace(member), member) == 1 then enter(plan, member, item) end
end

local function forget(plan, member)
  leave(plan, member)
  redis.call('HDEL', plan.key .. ':items', member)
  redis.call('HDEL', plan.key .. ':claims', member)
  redis.call('HDEL', plan.key .. ':crashes', member)
  redis.call('ZREM', plan.key .. ':leases', member)
  redis.call('ZREM', polledKey(plan, member), member)
end

-- Claim: token, process, taken (and whether its lease ran out while its process may still be there), virtual time of the
-- claim, slot, lane, how late it is.
local function readClaim(stored)
  if not stored then return nil end
  local token, process, taken, v, slot, lane, late = string.match(stored, '^(%S+) (%S+) ([012]) (%S+) (%S+) (%a+) (%S+)$')
  if not token then return nil end
  return {
    token = token,
    process = process,
    taken = taken ~= '0',
    doubted = taken == '2',
    v = number(v, 0),
    slot = number(slot, 0),
    lane = lane,
    late = number(late, 0),
  }
end

local function writeClaim(claim)
  return string.format(
    '%s %s %s %.6f %.3f %s %.3f',
    claim.token, claim.process, claim.doubted and '2' or claim.taken and '1' or '0', claim.v, claim.slot, claim.lane, claim.late
  )
end

-- What was under way twice in a row when its process ended may have ended it: it is polled alone. The first time says
-- little, and nobody is to wait for it: processes are killed for many reasons.
local function isSuspect(plan, member)
  return tonumber(redis.call('HGET', plan.key .. ':crashes', member) or '0') >= 2
end

local function endClaim(plan, member)
  redis.call('HDEL', plan.key .. ':claims', member)
  redis.call('ZREM', plan.key .. ':leases', member)
end

-- How far apart the slots of the budget are, ms; `pace` is the share of the budget that may be used for now.
local function slotStep(plan, pace) return 1000 / (PLAN.SHARE * plan.budget * pace) end

-- As far ahead as slots can be: those of all that is claimed, one after the other. What lies further was not put there by us.
local function lastSlot(plan, step)
  return plan.now + 1000 + (2 + redis.call('HLEN', plan.key .. ':claims')) * step
end

-- Another slot for a poll that missed its own.
local function slotAnew(plan, step)
  local slot = math.max(plan.now, math.min(plan.next, lastSlot(plan, step)))
  redis.call('HSET', plan.key, 'next', text(slot + step))
  return slot
end

-- How long it takes to poll every wallet once, if the whole budget did nothing else, ms. What has left the config does not
-- count.
local function roundOf(plan)
  local wallets = redis.call('ZCARD', plan.key .. ':polled:wallet') - redis.call('ZCARD', plan.key .. ':spareWallets')
  return math.max(0, wallets) * slotStep(plan, 1)
end

-- Whether pages of wallets are all that a subject is wanted from, and have served everybody.
local function isServedByPages(claimsKey)
  local all = redis.call('HGETALL', claimsKey)
  for i = 1, #all, 2 do
    if not string.match(all[i], '^[^|]*|wallet:') or string.sub(all[i + 1], -2) ~= ':1' then return false end
  end
  return true
end

-- Something else has just shown a member: until `ms` from now it needs no poll of its own. Not for ever: what shows it may
-- have stopped moving itself, so that it is polled itself at least hourly. What waits for an answer is left alone.
-- Once pages show it no more, it waits for `virtual` seconds from now on, as if it had been polled itself: else all that
-- left a page would come first, all at once; and for `latestMs` at most. What somebody has named is polled itself all the same.
local function cover(plan, member, claimsKey, ms, alarmMs, virtual, latestMs)
  if alarmMs ~= '' and redis.call('HEXISTS', plan.key .. ':items', member) == 1 then
    redis.call('ZADD', plan.key .. ':alarms', text(plan.now + tonumber(alarmMs)), member)
  end
  local rests = redis.call('ZSCORE', plan.key .. ':resting', member)
  if rests and tonumber(rests) > plan.now + ms / 2 then return end
  if not rests and not redis.call('ZSCORE', plan.key .. ':fair', member) then return end
  local item = getItem(plan, member)
  if not item or item.lane ~= 'fair' or item.fails > 0 or not isServedByPages(claimsKey) then return end
  if item.own == 0 then item.own = plan.now end
  item.v = plan.v + virtual
  local untilMs = math.min(plan.now + ms, item.own + 3600000)
  if untilMs <= plan.now then return end
  item.latest = untilMs + latestMs
  redis.call('ZREM', plan.key .. ':fair', member)
  redis.call('ZREM', plan.key .. latestPlace(member), member)
  rest(plan, member, item, untilMs - plan.now)
end
