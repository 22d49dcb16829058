--[[
  Takes a claim for a worker, under a token of its own, and reads all data of the poll at one time.

  KEYS
    plan            hash    clock of the plan (include/plan.lua)
    endpointGroup   hash    state of the endpoint group (include/endpoint-group.lua)
    subject         hash    snapshot
    claims          hash    subscription key -> claim
    commit          string  the commit counter
    wanted          hash    subscription key -> time from which a subscription names it (ms)
    subscriptions   hash    name -> definition
    facts           hash    observations of the pages of a wallet
    open            hash    transfers of a wallet that have not ended
    importedQuotes  hash    quote -> its imported data
    verdicts        hash    quote -> verdict on its signature
    sweep           hash    the sweep over pages of which one is polled

  ARGV
    member    text    as in the plan: the subject, or a page of its sweep
    token     text    token of the claim
    process   text    process id
    atMs      text?   time of the plan, ms; none for Redis time
    subject   text    subject id
    lateMs    number  ms by which a poll may be late without a new slot
    routes    text    key of the definitions of routes
    route     text    name of the route; "" for any other subject
    since     text    key of the times at which keys were subscribed on the upstream's clock
    promised  text    key of the promises of quotes to intents
    tracked   text    key of the definitions of subjects that are tracked by themselves

  returns or nothing
    token          text
    inMs           number   ms to its slot
    planMs         number   the plan's time
    redisMs        number   Redis time
    lane           "fair" | "overdue" | "first" | "asked" | "failing" | "suspect" | "probe" | "spare"
    lateMs         number
    virtual        number   virtual time of the claim
    dv             number   advance of virtual time
    dt             number   time in which it advanced
    roundMs        number   ms for polling every wallet once
    fails          number   failures in a row
    asOf           text     the commit counter
    snapshot       hash
    claims         hash
    subscriptions  hash     name -> definition
    facts          hash
    open           hash
    imported       text?    imported data of the quote
    verdict        text
    route          text?    its definition
    sweep          hash
    polledAtMs     number?  time of its last successful poll; none for a wallet
    sinces         hash     subscription key -> start on the upstream's clock, of a wallet
    promised       text     promise of its quote to an intent, or ""
    isRequested    flag     true when it was requested or is new

  Nothing when the claim is another's by now, or the member is not tracked any more. Claims that no subscription wants any
  more are removed.
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
local member, subject = ARGV.member, ARGV.subject
local claim = readClaim(redis.call('HGET', plan.key .. ':claims', member))
if not claim or claim.token ~= ARGV.token then return {} end
local item = getItem(plan, member)
if not item then
  endClaim(plan, member)
  return {}
end

-- A pause that began meanwhile holds for this poll as well.
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
if endpointGroup.pausedUntil > plan.now then
  endClaim(plan, member)
  if isSuspect(plan, member) then
    redis.call('ZADD', plan.key .. ':suspects', text(plan.now), member)
  else
    enter(plan, member, item)
  end
  return {}
end

claim.slot = boundSlot(plan, claim.slot, slotStep(plan, 0.25))
if plan.now > claim.slot + tonumber(ARGV.lateMs) then
  claim.slot = slotAnew(plan, slotStep(plan, endpointGroup.pace))
end
-- The claim's own token is never given again, and only one worker can take it.
claim.token = claim.token .. 't'
claim.process = ARGV.process
claim.taken = true
redis.call('HSET', plan.key .. ':claims', member, writeClaim(claim))
redis.call('ZADD', plan.key .. ':leases', text(math.max(plan.now, claim.slot) + PLAN.LEASE), member)

local names, sinces = {}, {}
local isWallet = kindOf(subject) == 'wallet'
local snapshot = isWallet and {} or redis.call('HGETALL', KEYS.subject)
if not isWallet and #snapshot == 0 and restoreCompact(prefixOf(KEYS.subject, subject), subject) then
  snapshot = redis.call('HGETALL', KEYS.subject)
end
local all, isRepaired = redis.call('HGETALL', KEYS.claims), false
for i = 1, #all, 2 do
  -- A claim of another shape is made anew where a config names the subject; a page makes its own anew.
  if not string.match(all[i + 1], '^%d+:%-?%d*:[01]$') then
    isRepaired = true
    local at = string.sub(all[i], -#subject - 1) == '|' .. subject and redis.call('HGET', KEYS.wanted, all[i])
    if at then redis.call('HSET', KEYS.claims, all[i], at .. '::0') else redis.call('HDEL', KEYS.claims, all[i]) end
  end
end
local claims = currentClaims(KEYS.claims, KEYS.wanted, not isRepaired and all or nil)
local isWanted = {}
local upstream = isWallet and valuesOf(ARGV.since, claims) or {}
for i = 1, #claims, 2 do
  local claimKey = claims[i]
  isWanted[claimKey] = true
  local name = definitionName(claimKey)
  if name and not names[name] then names[#names + 1], names[name] = name, true end
  if upstream[claimKey] then
    sinces[#sinces + 1] = claimKey
    sinces[#sinces + 1] = upstream[claimKey]
  end
end
for i = 1, #all, 2 do
  if not isWanted[all[i]] then redis.call('HDEL', KEYS.claims, all[i]) end
end
local subscriptions = {}
for _, name in ipairs(names) do
  local definition = definitionOf(name, KEYS.subscriptions, ARGV.tracked)
  if definition then
    subscriptions[#subscriptions + 1] = name
    subscriptions[#subscriptions + 1] = definition
  end
end

local isQuote = kindOf(subject) == 'quote'
return {
  claim.token, text(claim.slot - plan.now), text(plan.now), text(plan.redisNow), claim.lane, text(claim.late),
  string.format('%.6f', claim.v), plan.more[1] or '0', plan.more[2] or '0', text(roundOf(plan, plan.more[3])), tostring(item.fails),
  redis.call('GET', KEYS.commit) or '0',
  snapshot,
  claims, subscriptions,
  isWallet and redis.call('HGETALL', KEYS.facts) or {},
  isWallet and redis.call('HGETALL', KEYS.open) or {},
  isQuote and redis.call('HGET', KEYS.importedQuotes, subject) or '',
  isQuote and redis.call('HGET', KEYS.verdicts, subject) or '',
  ARGV.route ~= '' and redis.call('HGET', ARGV.routes, ARGV.route) or '',
  member ~= subject and redis.call('HGETALL', KEYS.sweep) or {},
  not isWallet and redis.call('ZSCORE', polledKey(plan, subject), subject) or '',
  sinces,
  kindOf(subject) == 'intent' and redis.call('HGET', ARGV.promised, subject) or '',
  -- The claim may have another lane: a failing, suspected or probing member was requested all the same.
  (item.lane == 'asked' or item.lane == 'first') and '1' or '0',
}
