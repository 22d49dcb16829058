--[[
  Claims polls for a process, each in a slot of the budget and under a lease. Also returns members whose lease has ended, and
  moves rested members to their lanes. Its cost depends on the number of claims, not on the number of waiting members.

  KEYS
    plan           hash  clock of the plan; its other keys begin with it (see include/plan.lua)
    endpointGroup  hash  state of the endpoint group (see include/endpoint-group.lua)

  ARGV
    process  text     process id
    most     number   limit of claimed polls
    aheadMs  number   ms ahead for which slots are assigned
    atMs     text?    time of the plan, ms; none for Redis time
    sent     json     claims that this process has passed to workers, a list of member, token, …
    kinds    ...text  kinds of subjects at this endpoint group, in the order in which they are probed

  returns
    waitMs    number  ms until the next call is useful; -1 when nothing is known to come
    polls     list of (member text, token text, inMs number)  `inMs` is the time to its slot
    crashed   list of (member text, crashes number)  members that may have ended their processes
    returned  number  number of returned members
    arrived   list of text  tokens of passed claims that no longer wait for a worker
]]
-- @include plan
-- @include endpoint-group
local plan = openPlan(KEYS.plan, ARGV.atMs, {
  'turn', 'turnUrgent', 'turnOverdue', 'failNext', 'failTries', 'failOks', 'dv', 'dt', 'rateAt', 'suspect', 'used', 'tokens', 'turnBound', 'cold', 'spareNext',
})
local fields = plan.more
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
local process, most, aheadMs = ARGV.process, tonumber(ARGV.most), tonumber(ARGV.aheadMs)
local now, key = plan.now, plan.key

beginGrace(plan)
redis.call('ZADD', key .. ':processes', text(now), process)

-- Renews claims that are on their way to a worker: they are not lost, however slow the machine is. Otherwise nothing would be
-- polled where workers are later than a lease is long.
local sent, arrived = cjson.decode(ARGV.sent), {}
for i = 1, #sent, 2 do
  local claim = readClaim(redis.call('HGET', key .. ':claims', sent[i]))
  if claim and not claim.started and claim.token == sent[i + 1] then
    redis.call('ZADD', key .. ':leases', wholeMs(math.max(now, claim.slot) + PLAN.CLAIM_LEASE), sent[i])
  else
    arrived[#arrived + 1] = sent[i + 1]
  end
end

-- Leases that have ended. No process could renew while Redis was away: then started claims first get their time again.
local crashed, returned = {}, 0
local MOST_RETURNED, moreToReturn = 20, false
local function expire(member)
  local claim = readClaim(redis.call('HGET', key .. ':claims', member))
  local isGone = claim and claim.process == PLAN.GONE
  if claim and claim.started and not isGone and now < plan.graceUntil then
    redis.call('ZADD', key .. ':leases', text(plan.graceUntil), member)
    return
  end
  local beat = claim and tonumber(redis.call('ZSCORE', key .. ':processes', claim.process) or '-inf')
  local isAlive = beat and beat >= now - PLAN.LEASE
  if claim and claim.started and not claim.doubted and isAlive then
    -- The process may be gone, or have lost only this poll: it first gets the time for its next heartbeat.
    claim.doubted = true
    redis.call('HSET', key .. ':claims', member, writeClaim(claim))
    redis.call('ZADD', key .. ':leases', text(beat + PLAN.LEASE + 1), member)
    return
  end
  local item = getItem(plan, member)
  endClaim(plan, member)
  returned = returned + 1
  if not item then
    redis.call('HDEL', key .. ':crashes', member)
  elseif claim and claim.started and not isAlive then
    local crashes = redis.call('HINCRBY', key .. ':crashes', member, 1)
    if isSuspect(plan, member) then
      local waitMs = crashes == 2 and 0 or math.min(PLAN.LONGEST_SUSPENSION, 15000 * 2 ^ crashes)
      redis.call('ZADD', key .. ':suspects', text(now + waitMs), member)
      crashed[#crashed + 1] = member
      crashed[#crashed + 1] = tostring(crashes)
    else
      item.again = false
      enter(plan, member, item)
    end
  elseif isSuspect(plan, member) then
    redis.call('ZADD', key .. ':suspects', text(now), member)
  else
    item.again = false
    enter(plan, member, item)
  end
end
local ended = redis.call('ZRANGEBYSCORE', key .. ':leases', '-inf', text(now), 'LIMIT', 0, MOST_RETURNED)
for _, member in ipairs(ended) do expire(member) end
moreToReturn = #ended == MOST_RETURNED

for _, member in ipairs(redis.call('ZRANGEBYSCORE', key .. ':alarms', '-inf', text(now), 'LIMIT', 0, 50)) do
  redis.call('ZREM', key .. ':alarms', member)
  if redis.call('HEXISTS', key .. ':items', member) == 1 then requestPoll(plan, member, 'requested') end
end

local rested = redis.call('ZRANGEBYSCORE', key .. ':resting', '-inf', text(now), 'LIMIT', 0, 100)
if #rested > 0 then
  redis.call('ZREM', key .. ':resting', unpack(rested))
  local items, entries = redis.call('HMGET', key .. ':items', unpack(rested)), {}
  for index, member in ipairs(rested) do
    if items[index] then entries[#entries + 1] = { member = member, item = readItem(items[index]) } end
  end
  enterAll(plan, entries)
end

-- After an outage no member waits for a backoff that the outage made. Members that failed long before it still wait: tried all
-- at once, with no success between, they would count as the next outage.
if endpointGroup.amnesty then
  redis.call('HDEL', KEYS.endpointGroup, 'amnesty')
  for _, member in ipairs(redis.call('ZRANGE', key .. ':failing', 0, 499)) do
    local item = getItem(plan, member)
    if not item then
      redis.call('ZREM', key .. ':failing', member)
    elseif item.fails <= ENDPOINT_GROUP.FAILURES_OF_OUTAGE then
      redis.call('ZREM', key .. ':failing', member)
      enter(plan, member, item)
    end
  end
end

local gate = endpointGroupGate(endpointGroup, plan)
local step = slotStep(plan, endpointGroup.pace)
plan.next = boundSlot(plan, plan.next, step)
local slot = math.max(now, plan.next)
local slots = 0
if gate.open then slots = math.max(0, math.min(most, math.floor((now + aheadMs - slot) / step) + 1)) end
local mostPicks = slots

-- The heads of all lanes, as many as can be claimed.
local function heads(isUsed, ...)
  return slots > 0 and isUsed and redis.call(...) or {}
end
local last = math.max(0, slots - 1)
local areUrgent = redis.call('EXISTS', key .. ':requested', key .. ':first') > 0
-- Most plans have none of these.
local areSetBack = redis.call('EXISTS', key .. ':failing', key .. ':suspects', key .. ':spare', key .. ':spareWallets') > 0
local wallets = countWallets(plan)
local roundMs = roundOf(plan, wallets)
-- A cold start with wallets that were never polled: they come before polled ones, except where a poll has become worth it
-- meanwhile.
local first = areUrgent and redis.call('ZRANGE', key .. ':first', 0, last, 'WITHSCORES') or {}
local oldest = first[1]
local anew = oldest and kindOf(oldest) == 'wallet'
local isCold = anew and (fields[14] == '1' or number(fields[7], 0) == 0)
local overdue = heads(true, 'ZRANGEBYSCORE', key .. ':latest', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, slots)
-- Beside other kinds, wallets count as overdue about a round earlier: after less than two rounds.
local others = not isCold and (oldest and not anew or #overdue > 0)
local early = others and PLAN.EARLY_ROUNDS * roundMs or 0
local lanes = {
  requested = heads(areUrgent, 'ZRANGE', key .. ':requested', 0, last, 'WITHSCORES'),
  first = slots > 0 and first or {},
  -- Members that were never polled have waited longest.
  bound = heads(not isCold, 'ZRANGEBYSCORE', key .. ':bound', '-inf', text(now + early), 'WITHSCORES', 'LIMIT', 0, slots),
  overdue = overdue,
  -- Overdue members may be at the head of this lane as well.
  fair = heads(true, 'ZRANGE', key .. ':fair', 0, 2 * last + 1, 'WITHSCORES'),
  failing = heads(areSetBack, 'ZRANGEBYSCORE', key .. ':failing', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, slots),
  suspect = heads(areSetBack, 'ZRANGEBYSCORE', key .. ':suspects', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, 1),
  spare = heads(areSetBack, 'ZRANGEBYSCORE', key .. ':spare', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, slots),
  spareWallets = heads(areSetBack, 'ZRANGEBYSCORE', key .. ':spareWallets', '-inf', text(now), 'WITHSCORES', 'LIMIT', 0, slots),
}
local at = { requested = 1, first = 1, bound = 1, overdue = 1, fair = 1, failing = 1, suspect = 1, spare = 1, spareWallets = 1 }
local gone = {}

local function head(lane)
  local list = lanes[lane]
  while list[at[lane]] and gone[list[at[lane]]] do at[lane] = at[lane] + 2 end
  local member = list[at[lane]]
  return member, member and tonumber(list[at[lane] + 1])
end

local turn, turnUrgent, turnOverdue = fields[1] == '1', fields[2] == '1', number(fields[3], 0)
local turnBound = number(fields[13], 0)
local failNext = math.min(number(fields[4], 0), now + 600000)
local spareNext = math.min(number(fields[15], 0), now + 600000)
local failTries, failOks = number(fields[5], 0), number(fields[6], 0)
local share = (failTries >= 4 and failOks / failTries >= 0.25) and PLAN.FAILING_SHARE_RECOVERING or PLAN.FAILING_SHARE
local suspectFree = areSetBack and not (fields[10] and isClaimed(plan, fields[10]))
local suspect, advanced = nil, 0

-- Virtual time per slot, at its recent rate. It goes on at that rate beside urgent members, for any served one: otherwise
-- regular members would wait until nothing urgent remains.
local dvBefore, dtBefore = number(fields[7], 0), number(fields[8], 0)
local pulse = step / 1000
if dtBefore > 0 and dvBefore > 0 then pulse = dvBefore / dtBefore * pulse end
-- At a cold start it moves evenly, and reaches the wallets that were polled first when all were polled: bunched, the price
-- would swing with every round.
if isCold then pulse = PLAN.ANEW_SECONDS * step / roundMs end

-- Chooses an overdue lane: wallets first, but never wallets alone. Of many wallets some are always overdue.
local function chooseOverdue()
  local bound, others = head('bound'), head('overdue')
  if bound and others then
    turnBound = (turnBound + PLAN.BOUND_SHARE) % 1
    return turnBound < PLAN.BOUND_SHARE and 'bound' or 'overdue'
  end
  return bound and 'bound' or 'overdue'
end

-- Chooses the spare lane whose first member has been allowed for longest.
local function chooseSpare()
  local other, otherFrom = head('spare')
  local wallet, walletFrom = head('spareWallets')
  if wallet and (not other or walletFrom <= otherFrom) then return 'spareWallets' end
  return other and 'spare'
end

-- Chooses the next lane: of two waiting lanes, each has its turn.
local function choose()
  if suspectFree and not suspect and head('suspect') then return 'suspect' end
  if failNext <= now and head('failing') then return 'failing' end
  local spare = chooseSpare()
  if spare and spareNext <= now then return spare end
  local overdue = head('bound') or head('overdue')
  local requested, first = head('requested'), head('first')
  local fair, score = head('fair')
  local urgent = requested or first
  if overdue and not (urgent or fair) then return chooseOverdue() end
  if overdue then
    turnOverdue = (turnOverdue + PLAN.OVERDUE_SHARE) % 1
    if turnOverdue < PLAN.OVERDUE_SHARE then return chooseOverdue() end
  end
  if urgent and fair and score <= plan.v then
    turn = not turn
    if turn then return 'fair' end
  end
  if not urgent then return fair and 'fair' or spare end
  if requested and first then
    turnUrgent = not turnUrgent
    return turnUrgent and 'requested' or 'first'
  end
  return requested and 'requested' or 'first'
end

local picks, claims, leases, removed = {}, {}, {}, {}
-- Beyond 2^53 the next number would be the same one.
local MOST_TOKENS = 1e15
local token = string.match(fields[12] or '', '^%d+$') and tonumber(fields[12]) or 0
if token > MOST_TOKENS then token = 0 end

local function hand(member, lane, late)
  token = token + 1
  gone[member] = true
  local id = string.format('%.0f', token)
  claims[#claims + 1] = member
  claims[#claims + 1] = writeClaim({
    token = id, process = process, started = false, v = plan.v, slot = slot, lane = lane, late = math.max(0, late),
  })
  leases[#leases + 1] = wholeMs(math.max(now, slot) + PLAN.CLAIM_LEASE)
  leases[#leases + 1] = member
  picks[#picks + 1] = member
  picks[#picks + 1] = id
  picks[#picks + 1] = text(slot - now)
  slot = slot + step
  slots = slots - 1
end

local NAMES = { bound = 'overdue', spareWallets = 'spare' }
if gate.probe then
  -- Where only suspected or failing members remain, one of them has to find out that the endpoint group answers again.
  suspect = suspectFree and head('suspect') or nil
  local otherwise = head('requested') or head('first') or head('fair') or suspect or head('failing') or head('spareWallets') or head('spare')
  local member = slots > 0 and probeCandidate(plan, endpointGroup, ARGV.kinds, otherwise)
  if member ~= suspect then suspect = nil end
  if member then
    leave(plan, member)
    hand(member, 'probe', 0)
    endpointGroupProbed(endpointGroup, plan, member)
  end
else
  while slots > 0 do
    local lane = choose()
    if not lane then break end
    local member, score = head(lane)
    removed[lane] = removed[lane] or {}
    table.insert(removed[lane], member)
    local late = 0
    local isContended = head('requested') or head('first')
    local ahead = (lane == 'requested' or lane == 'first' or isContended) and pulse or 0
    if lane == 'fair' then ahead = math.max(ahead, score - plan.v) end
    advanced = advanced + ahead
    plan.v = plan.v + ahead
    if lane == 'fair' then
      late = 0
    elseif lane == 'failing' then
      failNext = math.max(now, failNext) + step / share
    elseif lane == 'suspect' then
      suspect = member
    elseif lane == 'spare' or lane == 'spareWallets' then
      spareNext = math.max(now, spareNext) + step / PLAN.SPARE_SHARE
    else
      late = now - score
    end
    hand(member, NAMES[lane] or lane, late)
  end
end

if #claims > 0 then plan.next = slot end

-- The rate of virtual time is the price of a request (see `priceOf` in store/plan-state.ts): decaying sums of both times.
local rateAt = math.min(number(fields[9], now), now)
local seconds = (now - rateAt) / 1000
local decay = math.exp(-seconds / math.max(PLAN.MEAN_SECONDS, PLAN.MEAN_ROUNDS * roundMs / 1000))
local dv = dvBefore * decay + advanced
local dt = dtBefore * decay + seconds
-- Before the claims: no token is given twice.
redis.call(
  'HSET', key, 'last', text(now), 'offset', text(plan.offset), 'graceUntil', text(plan.graceUntil),
  'v', string.format('%.6f', plan.v), 'next', text(plan.next), 'failNext', text(failNext), 'spareNext', text(spareNext),
  'turn', turn and '1' or '0', 'turnUrgent', turnUrgent and '1' or '0', 'turnOverdue', text(turnOverdue), 'turnBound', text(turnBound), 'cold', isCold and '1' or '0',
  'dv', string.format('%.9g', dv), 'dt', string.format('%.9g', dt), 'rateAt', text(now),
  'used', string.format('%.9g', number(fields[11], 0) * decay + #picks / 3),
  'tokens', string.format('%.0f', token), 'wallets', wallets, 'suspect', suspect or fields[10] or ''
)

local PLACES = {
  requested = ':requested', first = ':first', failing = ':failing', suspect = ':suspects', spare = ':spare', spareWallets = ':spareWallets',
}
local LATEST = { bound = ':bound', overdue = ':latest' }
local left = {}
for lane, members in pairs(removed) do
  for _, member in ipairs(members) do
    -- A member with a longest wait is in two places.
    local places = PLACES[lane] and { PLACES[lane] } or { ':fair', latestPlace(member) }
    if LATEST[lane] and LATEST[lane] ~= places[2] then places[3] = LATEST[lane] end
    for _, place in ipairs(places) do
      left[place] = left[place] or {}
      table.insert(left[place], member)
    end
  end
end
for place, members in pairs(left) do redis.call('ZREM', key .. place, unpack(members)) end
if #claims > 0 then
  redis.call('HSET', key .. ':claims', unpack(claims))
  redis.call('ZADD', key .. ':leases', unpack(leases))
end

-- Time until the next call is useful, ms.
local wait = -1
local function worth(ms)
  if ms and (wait < 0 or ms < wait) then wait = math.max(0, ms) end
end
if moreToReturn then worth(0) end

-- True where another member may wait for a slot: one that was read, or one behind as many as were read.
local function isMore()
  if mostPicks == 0 then return plan.next - now > aheadMs end
  for lane, list in pairs(lanes) do
    if head(lane) or #list >= 2 * mostPicks * (lane == 'fair' and 2 or 1) then return true end
  end
  return false
end

if not gate.open then
  worth(gate.waitMs)
elseif slots == 0 and isMore() or gate.probe and slots == 0 and mostPicks > 0 then
  worth(plan.next - now - aheadMs / 3)
elseif gate.probe then
  worth(500)
else
  local from = slots == 0 and math.max(now, plan.next - aheadMs / 3) or now
  local function soonest(place, fromMs)
    local entry = redis.call('ZRANGE', key .. place, 0, 0, 'WITHSCORES')
    if entry[2] then worth(math.max(tonumber(entry[2]), fromMs) - now) end
  end
  soonest(':resting', from)
  soonest(':alarms', from)
  if areSetBack then
    soonest(':failing', math.max(failNext, from))
    soonest(':spare', from)
    soonest(':spareWallets', from)
    if suspectFree and not suspect then soonest(':suspects', from) end
  end
end
return { text(wait), picks, crashed, returned, arrived }
