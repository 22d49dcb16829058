--[[
  Stores the snapshot of a subject from a response, and the event that follows from it, in one step.

  KEYS
    subject          hash    snapshot
    claims           hash    subscription key -> claim
    commit           string  the commit counter
    events           stream  the event log
    plan             hash    clock of the plan of the subject's endpointGroup (include/plan.lua)
    counts           hash    "<kind>|<status>" -> number of tracked subjects; keys of open transfers begin with it
    wanted           hash    subscription key -> time from which a subscription names it (ms)
    changedSubjects  zset    subject -> time of its last change, ms
    subjectEntries   zset    entries of the events of the subject in the log (see store/event-log.ts)
    trimmed          string  the newest entry of the log that was trimmed
    openStatusPlan   hash    clock of the plan of the open source of statuses
    promised         hash    intent -> promises of its quote

  ARGV
    subject         text     subject id
    token           text     names the stored content, so that a repeated commit is recognised
    asOf            text     the commit counter before the request
    snapshot        json?    list of field, value, ...; none leaves the snapshot as it is
    counted         text     "<kind>|<status>" of the new snapshot, else of the stored one; "" leaves the count
    event           text?    JSON, packed (store/packed.ts)
    meta            json?    of the event: { id, updatedAt: seconds or false, first: bool, claimKeys: list or false }
    claims          json     list of { key, at: ms as text, before: seconds as text or "" }
    virtualSeconds  number?  virtual seconds until its first poll, if it is not tracked yet; none for no tracking
    unconfirmed     text     "" leaves it, "-" clears it, "<since ms>|<key>" sets it
    flag            text     event by time that is marked as emitted; "" for none
    restMs          number   ms that a subject which is tracked from now on rests before its first poll
    atMs            text?    time of the plan, ms; none for Redis time
    latestMs        number   ms that its first poll may be late after that
    open            text     count of this snapshot among open transfers (include/open-transfers.lua); "" for none
    check           json?    the check that ends with the event: { base, id, token, state, fields, tx, logs, ... }
                             (see include/check.lua)
    call            text     names this call: a client library repeats it after a lost connection
    epoch           number   epoch of the data that the process knows (see store/epoch.ts)
    commits         number   largest commit that the process has seen in it
    isFollowed      flag     true when the open source may report a step ahead of this snapshot: it is polled there too
    basis           json?    the state by which the process decided, where it has not read it since the response:
                             { call, unconfirmed, claims: list of key, value, ... }; all are empty for a subject that was never
                             seen. No quote promised it anything

  returns
    outcome     "committed" | "already" | "superseded" | "gone" | "used" | "behind" | "outdated"
    commit      text     number of the commit that the snapshot has
    entry       text     entry of the event in the log; "" for none
    claimKeys   text     subscription keys of the entry, as it stores them; "" for none
    withheld    text     suspended ones for which it waits, as it stores them; "" for none
    polledAtMs  number?  time of its last successful poll before, where there is a `basis`; none for one that is not tracked

  | Outcome     | Meaning                                                                                              |
  |-------------|------------------------------------------------------------------------------------------------------|
  | committed   | this call stored it                                                                                   |
  | already     | the stored snapshot is the same: another commit made it                                              |
  | superseded  | the snapshot was written after `asOf`, or has the flag                                               |
  | gone, used  | the check may not end so (see include/check.lua)                                                     |
  | behind      | Redis went back, and is not synchronised yet: nothing was stored, no claims either                   |
  | outdated    | the subject is not as `basis` states it: nothing was stored, no claims either                          |

  Only "committed" wrote snapshot and event, once for repeated calls too. Claims are stored in any case: a page showed the
  subject, after any other commit meanwhile. A commit from a response is counted with the wallets among its claims (`moves` in
  store/wallets.ts): their pages are compared with the new state, even where they show what they showed before. A new claim of a
  known subject gets a subscribers entry that names the latest event, unless that event is history for it, and one for each event
  that its subscription missed (include/missed.lua). Events of suspended keys wait (include/suspended.lua).
]]
-- @include plan
-- @include shorten
-- @include open-transfers
-- @include counted
-- @include confirmed-time
-- @include check
-- @include claims
-- @include suspended
-- @include ended
-- @include compact
-- @include entries
-- @include missed
local subject, token, asOf = ARGV.subject, ARGV.token, tonumber(ARGV.asOf)

local MOST_COMMITS = 1e15
local seen, counter = tonumber(ARGV.commits), redis.call('GET', KEYS.commit)
local isCounter = counter and string.match(counter, '^%d+$') and tonumber(counter) <= MOST_COMMITS
local epoch = redis.call('HMGET', KEYS.events .. ':epoch', 'epoch', 'state')
local isEmptied = not counter and seen > 0 and (not epoch[1] or redis.call('EXISTS', KEYS.events) == 0)
if isEmptied or (epoch[1] or '1') ~= ARGV.epoch or epoch[2] == 'behind' or (isCounter and tonumber(counter) < seen) then
  return { 'behind', '0', '', '', '', '' }
end

-- True when the subject is as the process holds it.
local function isAsHeld(basis)
  local stored = redis.call('HMGET', KEYS.subject, 'call', 'unconfirmed')
  if (stored[1] or '') ~= basis.call or (stored[2] or '') ~= basis.unconfirmed then return false end
  local isThere = basis.call ~= '' or (redis.call('EXISTS', KEYS.subject) == 0 and not readCompact(prefixOf(KEYS.subject, subject), subject))
  if not isThere or redis.call('HEXISTS', KEYS.promised, subject) == 1 then return false end
  local all, claims = redis.call('HGETALL', KEYS.claims), {}
  for i = 1, #basis.claims, 2 do claims[basis.claims[i]] = basis.claims[i + 1] end
  for i = 1, #all, 2 do
    if claims[all[i]] ~= all[i + 1] then return false end
  end
  return #all == #basis.claims
end

-- Where everybody was notified of it, the event names the commit.
local names = redis.call('HMGET', KEYS.subject, 'token', 'eventId', 'call', 'commit')
local isStored = names[1] == token or (names[2] and expand(names[2])) == token
local isResent = names[3] == ARGV.call
-- An event that has left the log is made again, under its id, for the claims that it never reached.
if isStored and not isResent and ARGV.event ~= '' and cjson.decode(ARGV.meta).claimKeys then
  local latest = string.match(redis.call('HGET', KEYS.subject, 'eventEntry') or '', '^(%d+%-%d+)|')
  isStored = not latest or #redis.call('XRANGE', KEYS.events, latest, latest) > 0
end
local basis, polledAtMs = ARGV.basis ~= '' and cjson.decode(ARGV.basis) or nil, ''
if basis then
  -- Another process has stored the same since the request, or this call is repeated: a read before would have shown the basis.
  local isSince = (tonumber(names[4] or '') or -1) > (asOf or math.huge)
  if not (isStored and isSince) and not isResent and not isAsHeld(basis) then return { 'outdated', '0', '', '', '', '' } end
  polledAtMs = redis.call('ZSCORE', KEYS.plan .. ':polled:' .. string.match(subject, '^([^:]*):'), subject) or ''
end

-- All arguments are read before anything is written: Redis does not undo what a script did before an error.
local fields = ARGV.snapshot ~= '' and cjson.decode(ARGV.snapshot) or nil
local meta = ARGV.event ~= '' and cjson.decode(ARGV.meta) or nil
local claims = cjson.decode(ARGV.claims)
local check = ARGV.check ~= '' and cjson.decode(ARGV.check) or nil

local function isHistory(before, updatedAt)
  return before ~= '' and updatedAt and updatedAt ~= '' and tonumber(updatedAt) < tonumber(before)
end

-- A counter that was lost alone, or overwritten, continues behind the commits of the snapshot and of the process. A value of it
-- from before the request has no meaning then.
local storedCommit = redis.call('HGET', KEYS.subject, 'commit')
if not storedCommit and restoreCompact(prefixOf(KEYS.subject, subject), subject) then
  storedCommit = redis.call('HGET', KEYS.subject, 'commit')
end
local snapshotCommit = tonumber(storedCommit or '-1') or -1
if snapshotCommit > MOST_COMMITS then snapshotCommit = -1 end
if (counter and not isCounter) or (tonumber(counter) or 0) < math.max(snapshotCommit, seen) then
  redis.call('SET', KEYS.commit, string.format('%.0f', math.max(0, snapshotCommit, seen)))
  asOf = -math.huge
end
local outcome = 'committed'
if isStored then
  outcome = 'already'
elseif not asOf or snapshotCommit > asOf then
  outcome = 'superseded'
elseif ARGV.flag ~= '' then
  local flags = redis.call('HGET', KEYS.subject, 'flags') or ''
  if string.find('\n' .. flags .. '\n', '\n' .. ARGV.flag .. '\n', 1, true) then outcome = 'superseded' end
end
if check and outcome == 'committed' then
  local may = mayEndCheck(check)
  if may ~= 'open' then outcome = may end
end

-- Claims that were not served before. A claim with an unknown start may be stored under a key that it continues.
local fresh, isFresh, isCurrent = {}, {}, false
for _, claim in ipairs(claims) do
  local stored = redis.call('HGET', KEYS.claims, claim.key)
  local isSame = stored and string.match(stored, '^(%d+):') == claim.at
  if not isSame and not isCurrent then
    currentClaims(KEYS.claims, KEYS.wanted)
    isCurrent, stored = true, redis.call('HGET', KEYS.claims, claim.key)
  end
  if stored ~= claim.at .. ':' .. claim.before .. ':1' then
    fresh[#fresh + 1] = claim
    isFresh[claim.key] = true
  end
end

local function freshFor(updatedAt)
  local claimKeys = {}
  for _, claim in ipairs(fresh) do
    if not isHistory(claim.before, updatedAt) then claimKeys[#claimKeys + 1] = claim.key end
  end
  return claimKeys
end

local function encode(claimKeys)
  return #claimKeys == 0 and '[]' or cjson.encode(claimKeys)
end

-- Encodes subscription keys without the subject of the event, which most of them name.
local function encodeBeside(claimKeys)
  local short = {}
  for index, claimKey in ipairs(claimKeys) do
    short[index] = string.sub(claimKey, -#subject - 1) == '|' .. subject and string.sub(claimKey, 1, -#subject - 1) or claimKey
  end
  return encode(short)
end

-- Appends a subscribers entry to the log for each event so far that fresh claims get, oldest first. The latest is among them where
-- this answer makes no other (`isLatest`).
local function leadToFormer(isLatest)
  local stored = redis.call('HMGET', KEYS.subject, 'eventId', 'eventEntry')
  local latestEntry, updatedAt = string.match(stored[2] or '', '^([^|]*)|(.*)$')
  -- The event of a compact snapshot has expired from the log.
  if not stored[1] or not latestEntry then return end
  local latest = { entry = latestEntry, id = expand(stored[1]) }
  local left, events, led = leftOf(redis.call('HGETALL', KEYS.claims), KEYS.wanted), nil, {}
  local function lead(event, claim)
    led[event.entry] = led[event.entry] or {}
    table.insert(led[event.entry], claim.key)
  end
  for _, claim in ipairs(fresh) do
    local missed = 0
    if hasLeft(left, claim) then
      events = events or recentEvents(KEYS.events, KEYS.subjectEntries, latest)
      missed = missedOf(events, claim, KEYS.wanted)
    end
    for index = 1, missed do lead(events[index], claim) end
    if missed == 0 and isLatest and not isHistory(claim.before, updatedAt) then lead(latest, claim) end
  end
  if not events or #events == 0 then events = { latest } end
  for index = #events, 1, -1 do
    local event = events[index]
    local claimKeys, withheld = splitClaimKeys(KEYS.wanted, led[event.entry] or {})
    if #claimKeys > 0 then
      redis.call('XADD', KEYS.events, '*', 'v', SCHEMA_VERSION, 'kind', 'subscribers', 'event', event.id, 'entry', event.entry, 'claimKeys', encode(claimKeys))
    end
    for _, claimKey in ipairs(withheld) do await(KEYS.wanted, event.entry, event.id, claimKey) end
  end
end

local entry, reportedText, withheldText = '', '', ''
if meta and outcome == 'committed' then
  local claimKeys = meta.claimKeys or freshFor(meta.updatedAt)
  if not meta.claimKeys and not meta.first then
    local all = currentClaims(KEYS.claims, KEYS.wanted)
    for i = 1, #all, 2 do
      local isServed = string.match(all[i + 1], '^%d+:.*:1$')
      if isServed and not isFresh[all[i]] then claimKeys[#claimKeys + 1] = all[i] end
    end
  end
  -- This comes before the event is written: a key of another type ends the script.
  local isListed = listEntries(KEYS.subjectEntries, KEYS.subject)
  if isListed then trimEntries(KEYS.subjectEntries, KEYS.trimmed) end
  local reported, withheld = splitClaimKeys(KEYS.wanted, claimKeys)
  reportedText, withheldText = encodeBeside(reported), #withheld > 0 and encodeBeside(withheld) or ''
  local beside = withheldText ~= '' and { 'withheld', withheldText } or {}
  -- One that reaches nobody names its event, for claims that come later (include/missed.lua).
  if withheldText ~= '' or #reported == 0 then
    beside[#beside + 1] = 'id'
    beside[#beside + 1] = meta.id
  end
  if #fresh > 0 and not meta.claimKeys then leadToFormer(false) end
  entry = redis.call('XADD', KEYS.events, '*', 'v', SCHEMA_VERSION, 'kind', 'event', 'event', ARGV.event, 'claimKeys', reportedText, unpack(beside))
  for _, claimKey in ipairs(withheld) do await(KEYS.wanted, entry, meta.id, claimKey) end
  if isListed or meta.claimKeys then redis.call('ZADD', KEYS.subjectEntries, 0, memberOf(entry)) end
  -- Later claims are not notified of an event that was made for some claims alone.
  if not meta.claimKeys then
    local updatedAt = meta.updatedAt and string.format('%.0f', meta.updatedAt) or ''
    redis.call('HSET', KEYS.subject, 'eventId', shorten(meta.id), 'eventEntry', entry .. '|' .. updatedAt)
  end
elseif #fresh > 0 then
  leadToFormer(true)
end

if fields and outcome == 'committed' then
  snapshotCommit = redis.call('INCR', KEYS.commit)
  -- Of these, only those with an unusual value are among the fields.
  redis.call('HDEL', KEYS.subject, 'compact', 'shownAtMs', 'absentAtMs', 'flags', 'ahead', 'former', 'emitted', 'epoch', 'changedAtMs')
  redis.call('HSET', KEYS.subject, 'commit', string.format('%.0f', snapshotCommit), 'call', ARGV.call, unpack(fields))
  -- The former record may have had more pieces.
  local pieces = 1
  for i = 1, #fields, 2 do
    if string.match(fields[i], '^record%d') then pieces = pieces + 1 end
  end
  while redis.call('HDEL', KEYS.subject, 'record' .. pieces) == 1 do pieces = pieces + 1 end
  if meta and not meta.claimKeys then
    redis.call('HDEL', KEYS.subject, 'token')
  else
    redis.call('HSET', KEYS.subject, 'token', token)
  end
end
if check and outcome == 'committed' then endCheck(check) end
if outcome == 'committed' and (fields or entry ~= '') then
  local at = string.format('%.0f', stampMs(prefixOf(KEYS.subject, subject) .. ':clock'))
  if entry ~= '' then redis.call('ZADD', KEYS.changedSubjects, at, subject) else redis.call('ZADD', KEYS.changedSubjects, 'NX', at, subject) end
end

-- A claim is served when the subject has an event, or when its known state is history for the claim. Otherwise this answer was
-- dropped before any event was made, and the claim stays open for the next answer.
local reported = redis.call('HEXISTS', KEYS.subject, 'eventId') == 1
local storedUpdatedAt = redis.call('HGET', KEYS.subject, 'updatedAt')
for _, claim in ipairs(fresh) do
  local served = reported or isHistory(claim.before, storedUpdatedAt)
  redis.call('HSET', KEYS.claims, claim.key, claim.at .. ':' .. claim.before .. ':' .. (served and '1' or '0'))
end

local plan = { key = KEYS.plan }
local item = getItem(plan, subject)
if item and item.lane == 'spare' and #fresh > 0 and not isOut(KEYS.claims, KEYS.wanted) then
  recall(openPlan(KEYS.plan, ARGV.atMs), subject)
end
if ARGV.virtualSeconds ~= '' and not item then
  plan = openPlan(KEYS.plan, ARGV.atMs)
  local restMs = tonumber(ARGV.restMs)
  local lane = isOut(KEYS.claims, KEYS.wanted) and 'spare' or 'fair'
  track(plan, subject, newItem(lane, plan.v + tonumber(ARGV.virtualSeconds), plan.now + restMs + tonumber(ARGV.latestMs)), restMs)
end
if ARGV.isFollowed == '1' and outcome == 'committed' then
  local open = openPlan(KEYS.openStatusPlan, ARGV.atMs)
  local lane = isOut(KEYS.claims, KEYS.wanted) and 'spare' or 'fair'
  track(open, 'open-status:' .. subject, newItem(lane, open.v, open.now + PLAN.LATEST_ANEW), 0)
end
if outcome ~= 'committed' then
  local answer = outcome == 'already' and isResent and 'committed' or outcome
  return { answer, string.format('%.0f', snapshotCommit), '', '', '', polledAtMs }
end

-- Without a response, the state stays what pages are compared with.
if ARGV.flag == '' and not check then
  local pages, isCounted = prefixOf(KEYS.subject, subject) .. ':pages:', {}
  for _, claimKey in ipairs(redis.call('HKEYS', KEYS.claims)) do
    local wallet = string.match(claimKey, '^[^|]*|(wallet:.+)$')
    if wallet and not isCounted[wallet] then
      isCounted[wallet] = true
      local facts = pages .. wallet
      local counted = redis.call('EXISTS', facts) == 1 and redis.pcall('HINCRBY', facts, 'moves', 1)
      -- Facts of another shape are hints that pages note anew.
      if type(counted) == 'table' then redis.call('DEL', facts) end
    end
  end
end
if ARGV.unconfirmed == '-' then
  redis.call('HDEL', KEYS.subject, 'unconfirmed')
elseif ARGV.unconfirmed ~= '' then
  redis.call('HSET', KEYS.subject, 'unconfirmed', ARGV.unconfirmed)
end

if redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 1 then
  if ARGV.counted ~= '' then
    noteCounted(KEYS.subject, KEYS.counts, ARGV.counted)
    noteOpen(KEYS.subject, KEYS.counts, subject, ARGV.open)
  end
elseif not isNamedBy(currentClaims(KEYS.claims, KEYS.wanted), subject) then
  noteEnded(KEYS.subject, subject)
end
return { outcome, string.format('%.0f', snapshotCommit), entry, reportedText, withheldText, polledAtMs }
