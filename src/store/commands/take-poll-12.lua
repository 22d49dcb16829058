--[[
  A worker takes a claim, under a token of its own, and reads at one time all that the poll needs.

  KEYS[1] plan           hash    clock of the plan (include/plan.lua)
  KEYS[2] endpointGroup        hash    state of the endpoint group (include/endpoint-group.lua)
  KEYS[3] subject        hash    snapshot
  KEYS[4] claims         hash    root -> claim
  KEYS[5] commit         string  the commit counter
  KEYS[6] wanted         hash    root -> since when a subscription names it (ms)
  KEYS[7] subscriptions  hash    name -> definition
  KEYS[8] facts          hash    what was observed of the pages of a wallet
  KEYS[9] open           hash    transfers of a wallet that have not ended
  KEYS[10] imported        hash    quote -> what was imported of it
  KEYS[11] verdicts      hash    quote -> what was found out about its signature
  KEYS[12] sweep          hash    the sweep over pages of which one is polled

  ARGV[1] member         as in the plan: the subject, or a page of its sweep
  ARGV[2] token          of the claim
  ARGV[3] process id
  ARGV[4] the plan's time, ms; "" for that of Redis
  ARGV[5] subject id
  ARGV[6] how late a poll may be and still keep its slot, ms
  ARGV[7] routes hash    key of the definitions of routes
  ARGV[8] name of the route; "" for any other subject
  ARGV[9] since hash     key of when roots were subscribed on the upstream's clock
  ARGV[10] promised hash key of what quotes promised of intents
  ARGV[11] tracked hash  key of the definitions of what is tracked by itself

  Returns nothing when the claim is another's by now, or the member is not tracked any more. Else
    { token, ms to its slot, plan time, Redis time, lane, how late, virtual time, dv, dt,
      ms to poll every wallet once, failures in a row,
      as of, snapshot fields, claims, { subscription, definition, … }, facts, open, imported, verdict, route, sweep,
      when it was last polled with success, { root, since on the upstream's clock, … } of a wallet,
      what its quote promised of an intent or "", whether it was requested or is new: 1 or 0 }.
  Claims that nobody wants any more are removed.
]]
-- @include plan
-- @include endpoint-group
-- @include claims
-- @include definition
local plan = openPlan(KEYS[1], ARGV[4])
local member, subject = ARGV[1], ARGV[5]
local claim = readClaim(redis.call('HGET', plan.key .. ':claims', member))
if not claim or claim.token ~= ARGV[2] then return {} end
local item = getItem(plan, member)
if not item then
  endClaim(plan, member)
  return {}
end

-- A pause that began meanwhile holds for this look as well.
local endpointGroup = openEndpointGroup(KEYS[2], plan)
if endpointGroup.pausedUntil > plan.now then
  endClaim(plan, member)
  if isSuspect(plan, member) then
    redis.call('ZADD', plan.key .. ':suspects', text(plan.now), member)
  else
    enter(plan, member, item)
  end
  return {}
end

claim.slot = math.min(claim.slot, lastSlot(plan, slotStep(plan, 0.25)))
if plan.now > claim.slot + tonumber(ARGV[6]) then
  claim.slot = slotAnew(plan, slotStep(plan, endpointGroup.pace))
end
claim.token = string.format('%.0f', redis.call('HINCRBY', plan.key, 'tokens', 1))
claim.process = ARGV[3]
claim.taken = true
redis.call('HSET', plan.key .. ':claims', member, writeClaim(claim))
redis.call('ZADD', plan.key .. ':leases', text(math.max(plan.now, claim.slot) + PLAN.LEASE), member)

local names, sinces = {}, {}
local isWallet = kindOf(subject) == 'wallet'
local all = redis.call('HGETALL', KEYS[4])
for i = 1, #all, 2 do
  -- A claim of another shape is made anew for what a config names; a page makes its own anew.
  if not string.match(all[i + 1], '^%d+:%-?%d*:[01]$') then
    local at = string.sub(all[i], -#subject - 1) == '|' .. subject and redis.call('HGET', KEYS[6], all[i])
    if at then redis.call('HSET', KEYS[4], all[i], at .. '::0') else redis.call('HDEL', KEYS[4], all[i]) end
  end
end
local claims = currentClaims(KEYS[4], KEYS[6])
local isWanted = {}
for i = 1, #claims, 2 do
  local root = claims[i]
  isWanted[root] = true
  local name = definitionName(root)
  if name and not names[name] then names[#names + 1], names[name] = name, true end
  local upstream = isWallet and redis.call('HGET', ARGV[9], root)
  if upstream then
    sinces[#sinces + 1] = root
    sinces[#sinces + 1] = upstream
  end
end
for i = 1, #all, 2 do
  if not isWanted[all[i]] then redis.call('HDEL', KEYS[4], all[i]) end
end
local subscriptions = {}
for _, name in ipairs(names) do
  local definition = definitionOf(name, KEYS[7], ARGV[11])
  if definition then
    subscriptions[#subscriptions + 1] = name
    subscriptions[#subscriptions + 1] = definition
  end
end

local isQuote = kindOf(subject) == 'quote'
local rate = redis.call('HMGET', plan.key, 'dv', 'dt')
return {
  claim.token, text(claim.slot - plan.now), text(plan.now), text(plan.redisNow), claim.lane, text(claim.late),
  string.format('%.6f', claim.v), rate[1] or '0', rate[2] or '0', text(roundOf(plan)), tostring(item.fails),
  redis.call('GET', KEYS[5]) or '0',
  isWallet and {} or redis.call('HGETALL', KEYS[3]),
  claims, subscriptions,
  isWallet and redis.call('HGETALL', KEYS[8]) or {},
  isWallet and redis.call('HGETALL', KEYS[9]) or {},
  isQuote and redis.call('HGET', KEYS[10], subject) or '',
  isQuote and redis.call('HGET', KEYS[11], subject) or '',
  ARGV[8] ~= '' and redis.call('HGET', ARGV[7], ARGV[8]) or '',
  member ~= subject and redis.call('HGETALL', KEYS[12]) or {},
  redis.call('ZSCORE', polledKey(plan, subject), subject) or '',
  sinces,
  kindOf(subject) == 'intent' and redis.call('HGET', ARGV[10], subject) or '',
  -- The lane of the claim may be another: what fails, is suspected or probes was asked for all the same.
  (item.lane == 'asked' or item.lane == 'first') and '1' or '0',
}
