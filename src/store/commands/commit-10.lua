--[[
  Stores what an answer said about a subject and the event that follows from it, in one step.

  KEYS[1] subject    hash    snapshot
  KEYS[2] claims     hash    root -> claim
  KEYS[3] commit     string  the commit counter
  KEYS[4] events     stream  the event log
  KEYS[5] plan       hash    clock of the plan of the subject's endpointGroup (include/plan.lua)
  KEYS[6] counts     hash    "<kind>|<status>" -> number of tracked subjects; open transfers stand in keys that begin with it
  KEYS[7] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[8] changed    zset    subject -> when it changed last, ms
  KEYS[9] entries    zset    where the events of the subject are in the log (see store/subject-entries.ts)
  KEYS[10] trimmed   string  the newest entry of the log that was trimmed

  ARGV[1] subject id
  ARGV[2] token      names what is stored, so that one that is stored already is recognised
  ARGV[3] as of      the commit counter before the request
  ARGV[4] snapshot   JSON array of field, value, ...; "" leaves the snapshot as it is
  ARGV[5] counted    "<kind>|<status>" of the new snapshot, else of the one that stands; "" leaves what is counted
  ARGV[6] event      event JSON; "" for none
  ARGV[7] event meta JSON { id, updatedAt: seconds or false, first: bool, roots: list or false }
  ARGV[8] claims     JSON array of { root, at: ms as text, before: seconds as text or "" }
  ARGV[9] track      virtual seconds until its first poll, if nobody tracks it yet; "" for not at all
  ARGV[10] unconfirmed     "" leaves it, "-" clears it, "<since ms>|<key>" sets it
  ARGV[11] flag      event of time to be marked as made; "" for none
  ARGV[12] rest      ms that a subject which is tracked from now on rests before its first poll
  ARGV[13] the plan's time, ms; "" for that of Redis
  ARGV[14] longest   ms that its first poll may be late after that
  ARGV[15] open      what this snapshot is counted as among open transfers (include/open-transfers.lua); "" for none
  ARGV[16] check     JSON of the check that ends with the event: { base, id, token, state, fields, tx, logs, ... } (see
                     include/check.lua); "" for none
  ARGV[17] call      names this very call: a client library that was cut off sends it again
  ARGV[18] epoch     of the data, as the process knows it (see store/epoch.ts)
  ARGV[19] seen      the most commits that it has seen in it

  Returns { outcome, commit, entry }: outcome is
    "committed"   done, by this call
    "already"     the snapshot says just this: another commit made the very same
    "superseded"  the snapshot was written after `as of`, or the flag stands
    "gone", "taken"  the check may not end so (see include/check.lua)
    "behind"      Redis went back, or did and is not synchronised yet: nothing was done, claims included
  Only "committed" wrote snapshot and event, once however often it is sent. Claims are taken in any case: that a page showed
  the subject is true whatever was committed meanwhile. A claim that is new to a known subject gets a subscribers entry that
  names the latest event, unless that is history for it. For roots that are suspended events wait (include/suspended.lua).
]]
-- @include plan
-- @include open-transfers
-- @include counted
-- @include confirmed-time
-- @include check
-- @include claims
-- @include suspended
-- @include ended
-- @include entries
local subject, token, asOf = ARGV[1], ARGV[2], tonumber(ARGV[3])

local MOST_COMMITS = 1e15
local seen, counter = tonumber(ARGV[19]), redis.call('GET', KEYS[3])
local isCounter = counter and string.match(counter, '^%d+$') and tonumber(counter) <= MOST_COMMITS
local epoch = redis.call('HMGET', KEYS[4] .. ':epoch', 'epoch', 'state')
local isEmptied = not epoch[1] and not counter and seen > 0
if isEmptied or (epoch[1] or '1') ~= ARGV[18] or epoch[2] == 'behind' or (isCounter and tonumber(counter) < seen) then
  return { 'behind', '0', '' }
end

-- All arguments are read before anything is written: Redis does not undo what a script did before an error.
local fields = ARGV[4] ~= '' and cjson.decode(ARGV[4]) or nil
local meta = ARGV[6] ~= '' and cjson.decode(ARGV[7]) or nil
local claims = cjson.decode(ARGV[8])
local check = ARGV[16] ~= '' and cjson.decode(ARGV[16]) or nil

local function isHistory(before, updatedAt)
  return before ~= '' and updatedAt and updatedAt ~= '' and tonumber(updatedAt) < tonumber(before)
end

-- A counter that was lost alone, or written by something else, goes on behind what the snapshot and the process say; what was
-- requested by it says nothing then.
local snapshotCommit = tonumber(redis.call('HGET', KEYS[1], 'commit') or '-1') or -1
if snapshotCommit > MOST_COMMITS then snapshotCommit = -1 end
if (counter and not isCounter) or (tonumber(counter) or 0) < math.max(snapshotCommit, seen) then
  redis.call('SET', KEYS[3], string.format('%.0f', math.max(0, snapshotCommit, seen)))
  asOf = -math.huge
end
local outcome = 'committed'
-- Where everybody was notified of it, the event names the commit.
local names = redis.call('HMGET', KEYS[1], 'token', 'eventId', 'call')
local isResent = names[3] == ARGV[17]
if names[1] == token or names[2] == token then
  outcome = 'already'
elseif not asOf or snapshotCommit > asOf then
  outcome = 'superseded'
elseif ARGV[11] ~= '' then
  local flags = redis.call('HGET', KEYS[1], 'flags') or ''
  if string.find('\n' .. flags .. '\n', '\n' .. ARGV[11] .. '\n', 1, true) then outcome = 'superseded' end
end
if check and outcome == 'committed' then
  local may = mayEndCheck(check)
  if may ~= 'open' then outcome = may end
end

-- The claims that were not served before. One that is not known with its start may be stored under a root that it continues.
local fresh, isFresh, isCurrent = {}, {}, false
for _, claim in ipairs(claims) do
  local stored = redis.call('HGET', KEYS[2], claim.root)
  local isKnown = stored and string.match(stored, '^(%d+):') == claim.at
  if not isKnown and not isCurrent then
    currentClaims(KEYS[2], KEYS[7])
    isCurrent, stored = true, redis.call('HGET', KEYS[2], claim.root)
  end
  if stored ~= claim.at .. ':' .. claim.before .. ':1' then
    fresh[#fresh + 1] = claim
    isFresh[claim.root] = true
  end
end

local function freshFor(updatedAt)
  local roots = {}
  for _, claim in ipairs(fresh) do
    if not isHistory(claim.before, updatedAt) then roots[#roots + 1] = claim.root end
  end
  return roots
end

local function encode(roots)
  return #roots == 0 and '[]' or cjson.encode(roots)
end

-- Roots without the subject of the event beside them, which most of them name.
local function encodeBeside(roots)
  local short = {}
  for index, root in ipairs(roots) do
    short[index] = string.sub(root, -#subject - 1) == '|' .. subject and string.sub(root, 1, -#subject - 1) or root
  end
  return encode(short)
end

local entry = ''
if meta and outcome == 'committed' then
  local roots = meta.roots or freshFor(meta.updatedAt)
  if not meta.roots and not meta.first then
    local all = currentClaims(KEYS[2], KEYS[7])
    for i = 1, #all, 2 do
      local isServed = string.match(all[i + 1], '^%d+:.*:1$')
      if isServed and not isFresh[all[i]] then roots[#roots + 1] = all[i] end
    end
  end
  -- Before the event is written, for a key of another type ends the script.
  trimEntries(KEYS[9], KEYS[10])
  local reported, withheld = partRoots(KEYS[7], roots)
  local beside = #withheld > 0 and { 'withheld', encodeBeside(withheld) } or {}
  entry = redis.call('XADD', KEYS[4], '*', 'v', SCHEMA_VERSION, 'kind', 'event', 'event', ARGV[6], 'roots', encodeBeside(reported), unpack(beside))
  for _, root in ipairs(withheld) do await(KEYS[7], entry, meta.id, root) end
  redis.call('ZADD', KEYS[9], 0, memberOf(entry))
  redis.call('PERSIST', KEYS[9])
  -- An event that was made for some claims alone is none that a later claim could be notified of.
  if not meta.roots then
    local updatedAt = meta.updatedAt and string.format('%.0f', meta.updatedAt) or ''
    redis.call('HSET', KEYS[1], 'eventId', meta.id, 'eventEntry', entry, 'eventUpdatedAt', updatedAt)
  end
elseif #fresh > 0 then
  local latest = redis.call('HMGET', KEYS[1], 'eventId', 'eventEntry', 'eventUpdatedAt')
  -- The event of a compact snapshot has left the log.
  local roots, withheld = partRoots(KEYS[7], latest[1] and latest[2] and freshFor(latest[3]) or {})
  if #roots > 0 then
    redis.call('XADD', KEYS[4], '*', 'v', SCHEMA_VERSION, 'kind', 'subscribers', 'event', latest[1], 'entry', latest[2], 'roots', encode(roots))
  end
  for _, root in ipairs(withheld) do await(KEYS[7], latest[2], latest[1], root) end
end

if fields and outcome == 'committed' then
  snapshotCommit = redis.call('INCR', KEYS[3])
  redis.call('HSET', KEYS[1], 'commit', string.format('%.0f', snapshotCommit), 'call', ARGV[17], unpack(fields))
  redis.call('HDEL', KEYS[1], 'compact', 'shownAtMs', 'absentAtMs')
  if meta and not meta.roots then
    redis.call('HDEL', KEYS[1], 'token')
  else
    redis.call('HSET', KEYS[1], 'token', token)
  end
end
if check and outcome == 'committed' then endCheck(check) end
if outcome == 'committed' and (fields or entry ~= '') then
  local at = string.format('%.0f', stampMs(rootOf(KEYS[1], subject) .. ':clock'))
  if entry ~= '' then redis.call('ZADD', KEYS[8], at, subject) else redis.call('ZADD', KEYS[8], 'NX', at, subject) end
end

-- A claim is served when it was reported of the subject, or when what is known is history for it. One that is neither, for
-- this answer was dropped and no event was ever made, stays open for the next answer.
local reported = redis.call('HEXISTS', KEYS[1], 'eventId') == 1
local knownUpdatedAt = redis.call('HGET', KEYS[1], 'updatedAt')
for _, claim in ipairs(fresh) do
  local served = reported or isHistory(claim.before, knownUpdatedAt)
  redis.call('HSET', KEYS[2], claim.root, claim.at .. ':' .. claim.before .. ':' .. (served and '1' or '0'))
end

local plan = { key = KEYS[5] }
local item = getItem(plan, subject)
if item and item.lane == 'spare' and #fresh > 0 and not isOut(KEYS[2], KEYS[7]) then
  recall(openPlan(KEYS[5], ARGV[13]), subject)
end
if ARGV[9] ~= '' and not item then
  plan = openPlan(KEYS[5], ARGV[13])
  local restMs = tonumber(ARGV[12])
  local lane = isOut(KEYS[2], KEYS[7]) and 'spare' or 'fair'
  track(plan, subject, newItem(lane, plan.v + tonumber(ARGV[9]), plan.now + restMs + tonumber(ARGV[14])), restMs)
end
if outcome ~= 'committed' then
  local answer = outcome == 'already' and isResent and 'committed' or outcome
  return { answer, string.format('%.0f', snapshotCommit), '' }
end

if ARGV[10] == '-' then
  redis.call('HDEL', KEYS[1], 'unconfirmed')
elseif ARGV[10] ~= '' then
  redis.call('HSET', KEYS[1], 'unconfirmed', ARGV[10])
end

if redis.call('HEXISTS', KEYS[5] .. ':items', subject) == 1 then
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[2])
  if ARGV[5] ~= '' then
    noteCounted(KEYS[1], KEYS[6], ARGV[5])
    noteOpen(KEYS[1], KEYS[6], subject, ARGV[15])
  end
elseif not isNamedBy(currentClaims(KEYS[2], KEYS[7]), subject) then
  noteEnded(KEYS[1], subject)
end
return { outcome, string.format('%.0f', snapshotCommit), entry }
