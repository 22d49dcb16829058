--[[
  Takes claims for a worker, each under a token of its own, and reads all data of their polls at one time.

  KEYS
    plan            hash    clock of the plan (include/plan.lua)
    endpointGroup   hash    state of the endpoint group (include/endpoint-group.lua)
    commit          string  the commit counter
    wanted          hash    subscription key -> time from which a subscription names it (ms)
    subscriptions   hash    name -> definition
    importedQuotes  hash    quote -> its imported data
    verdicts        hash    quote -> verdict on its signature

  ARGV
    process        text    process id
    atMs           text?   time of the plan, ms; none for Redis time
    lateMs         number  ms by which a poll may be late without a new slot
    routes         text    key of the definitions of routes
    since          text    key of the times at which keys were subscribed on the upstream's clock
    promised       text    key of the promises of quotes to intents
    tracked        text    key of the definitions of subjects that are tracked by themselves
    subjectPrefix  text    prefix of the keys of snapshots
    claimsPrefix   text    prefix of the keys of claims (subscription key -> claim)
    factsPrefix    text    prefix of the keys of observations of the pages of a wallet
    openPrefix     text    prefix of the keys of transfers of a wallet that have not ended
    polls          ...(member text, token text, subject text, route text, sweep text, openVersion text)
                           member: as in the plan: the subject, or a page of its sweep
                           token: token of the claim
                           route: name of the route; "" for any other subject
                           sweep: key of the sweep over pages of which one is polled
                           openVersion: version of the transfers of the wallet that the process has in memory; "" for none

  returns
    planMs         number  the plan's time
    redisMs        number  Redis time
    dv             number  advance of virtual time
    dt             number  time in which it advanced
    roundMs        number  ms for polling every wallet once
    asOf           text    the commit counter
    subscriptions  hash    name -> definition, of all polls
    faults         list of (claim text, reason text)  claims that could not be started
    polls          ...[claim text, token text, inMs number, lane text, lateMs number, virtual number, fails number, snapshot hash, claims hash, facts hash, open hash, openVersion text, imported text?, verdict text, route text?, sweep hash, polledAtMs number?, sinces hash, promised text, isRequested flag]
                           claim: the token of the claim; token: its new one
                           open: transfers of the wallet that have not ended; none where the process has their openVersion
                           inMs: ms to its slot; virtual: virtual time of the claim; fails: failures in a row
                           imported: imported data of the quote; route: its definition
                           polledAtMs: time of its last successful poll; none for a wallet
                           sinces: subscription key -> start on the upstream's clock, of a wallet
                           promised: promise of its quote to an intent, or ""
                           isRequested: true when it was requested or is new

  A poll is omitted when its claim is another's by now, or the member is not tracked any more. Claims that no subscription wants
  any more are removed.
]]
-- @include plan
-- @include endpoint-group
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
-- @include definition
local plan = openPlan(KEYS.plan, ARGV.atMs, { 'dv', 'dt', 'wallets' })

-- Returns the transfers of a wallet that have not ended, with their version; none where the process has that version.
local function readOpen(openKey, held, token)
  local version = redis.call('HGET', openKey, 'version')
  if held ~= '' and version == held then return {}, version end
  local open = redis.call('HGETALL', openKey)
  if #open == 0 then return open, '' end
  if version and version ~= '' then return open, version end
  redis.call('HSET', openKey, 'version', token)
  return open, token
end

local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
local names, isNamed = {}, {}

-- Returns the row of a poll; nothing where there is none.
local function startPoll(at)
  local member, subject = ARGV.polls[at].member, ARGV.polls[at].subject
  local subjectKey, claimsKey = ARGV.subjectPrefix .. subject, ARGV.claimsPrefix .. subject
  local factsKey, openKey = ARGV.factsPrefix .. subject, ARGV.openPrefix .. subject
  local claim = readClaim(redis.call('HGET', plan.key .. ':claims', member))
  if not claim or claim.token ~= ARGV.polls[at].token then return end
  local item = getItem(plan, member)
  if not item then
    endClaim(plan, member)
    return
  end

  -- A pause that began meanwhile holds for this poll as well.
  if endpointGroup.pausedUntil > plan.now then
    endClaim(plan, member)
    if isSuspect(plan, member) then
      redis.call('ZADD', plan.key .. ':suspects', text(plan.now), member)
    else
      enter(plan, member, item)
    end
    return
  end

  claim.slot = boundSlot(plan, claim.slot, slotStep(plan, 0.25))
  if plan.now > claim.slot + tonumber(ARGV.lateMs) then
    claim.slot = slotAnew(plan, slotStep(plan, endpointGroup.pace))
  end
  -- The claim's own token is never given again, and only one worker can take it.
  claim.token = claim.token .. 't'
  claim.process = ARGV.process
  claim.started = true
  redis.call('HSET', plan.key .. ':claims', member, writeClaim(claim))
  redis.call('ZADD', plan.key .. ':leases', wholeMs(math.max(plan.now, claim.slot) + PLAN.LEASE), member)

  local sinces = {}
  local isWallet = kindOf(subject) == 'wallet'
  local snapshot = isWallet and {} or redis.call('HGETALL', subjectKey)
  if not isWallet and #snapshot == 0 and restoreCompact(prefixOf(subjectKey, subject), subject) then
    snapshot = redis.call('HGETALL', subjectKey)
  end
  local all, isRepaired = redis.call('HGETALL', claimsKey), false
  for i = 1, #all, 2 do
    -- A claim of another shape is made anew where a config names the subject; a page makes its own anew.
    if not string.match(all[i + 1], '^%d+:%-?%d*:[01]$') then
      isRepaired = true
      local since = string.sub(all[i], -#subject - 1) == '|' .. subject and redis.call('HGET', KEYS.wanted, all[i])
      if since then redis.call('HSET', claimsKey, all[i], since .. '::0') else redis.call('HDEL', claimsKey, all[i]) end
    end
  end
  local claims = currentClaims(claimsKey, KEYS.wanted, not isRepaired and all or nil)
  local isWanted = {}
  local upstream = isWallet and valuesOf(ARGV.since, claims) or {}
  for i = 1, #claims, 2 do
    local claimKey = claims[i]
    isWanted[claimKey] = true
    local name = definitionName(claimKey)
    if name and not isNamed[name] then names[#names + 1], isNamed[name] = name, true end
    if upstream[claimKey] then
      sinces[#sinces + 1] = claimKey
      sinces[#sinces + 1] = upstream[claimKey]
    end
  end
  for i = 1, #all, 2 do
    if not isWanted[all[i]] then redis.call('HDEL', claimsKey, all[i]) end
  end
  local isQuote = kindOf(subject) == 'quote'
  local open, openVersion = {}, ''
  if isWallet then open, openVersion = readOpen(openKey, ARGV.polls[at].openVersion, claim.token) end
  -- A foreign time counts as none: a number that cannot be read would concern all polls of the reply.
  local polledAt = not isWallet and number(redis.call('ZSCORE', polledKey(plan, subject), subject), nil)
  return {
    ARGV.polls[at].token, claim.token, text(claim.slot - plan.now), claim.lane,
    text(claim.late), string.format('%.6f', claim.v), tostring(item.fails),
    snapshot,
    claims,
    isWallet and redis.call('HGETALL', factsKey) or {},
    open,
    openVersion,
    isQuote and redis.call('HGET', KEYS.importedQuotes, subject) or '',
    isQuote and redis.call('HGET', KEYS.verdicts, subject) or '',
    ARGV.polls[at].route ~= '' and redis.call('HGET', ARGV.routes, ARGV.polls[at].route) or '',
    member ~= subject and redis.call('HGETALL', ARGV.polls[at].sweep) or {},
    polledAt and text(polledAt) or '',
    sinces,
    kindOf(subject) == 'intent' and redis.call('HGET', ARGV.promised, subject) or '',
    -- The claim may have another lane: a failing, suspected or probing member was requested all the same.
    (item.lane == 'requested' or item.lane == 'first') and '1' or '0',
  }
end

local faults, polls = {}, {}
for at = 1, #ARGV.polls do
  -- What is wrong with the keys of one subject concerns no other.
  local isStarted, row = pcall(startPoll, at)
  if not isStarted then
    faults[#faults + 1] = ARGV.polls[at].token
    faults[#faults + 1] = type(row) == 'table' and row.err or tostring(row)
  elseif row then
    polls[#polls + 1] = row
  end
end

local subscriptions = {}
for _, name in ipairs(names) do
  local definition = definitionOf(name, KEYS.subscriptions, ARGV.tracked)
  if definition then
    subscriptions[#subscriptions + 1] = name
    subscriptions[#subscriptions + 1] = definition
  end
end
return {
  text(plan.now), text(plan.redisNow), plan.more[1] or '0', plan.more[2] or '0', text(roundOf(plan, plan.more[3])),
  redis.call('GET', KEYS.commit) or '0', subscriptions, faults, unpack(polls),
}
