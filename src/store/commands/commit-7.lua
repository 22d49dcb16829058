--[[
  Stores what an answer said about a subject and the event that follows from it, in one step.

  KEYS[1] subject    hash    snapshot
  KEYS[2] claims     hash    root -> claim
  KEYS[3] commit     string  the commit counter
  KEYS[4] events     stream  the event log
  KEYS[5] due        zset    subjects that are polled, by the time of their next poll
  KEYS[6] counts     hash    "<kind>|<status>" -> number of polled subjects
  KEYS[7] wanted     hash    root -> since when a subscription names it (ms)

  ARGV[1] subject id
  ARGV[2] token      names this very commit, so that one sent twice is recognised
  ARGV[3] as of      the commit counter before the request
  ARGV[4] snapshot   JSON array of field, value, ...; "" leaves the snapshot as it is
  ARGV[5] counted    "<kind>|<status>" of the new snapshot; "" with no snapshot
  ARGV[6] event      event JSON; "" for none
  ARGV[7] event meta JSON { id, updatedAt: seconds or false, first: bool, roots: list or false }
  ARGV[8] claims     JSON array of { root, at: ms as text, before: seconds as text or "" }
  ARGV[9] due        ms at which the subject is polled first, if nobody polls it; "" for not at all
  ARGV[10] doubt     "" leaves it, "-" clears it, "<since ms>|<key>" sets it
  ARGV[11] flag      event of time to be marked as made; "" for none
  ARGV[12] keep      ms for which a subject that nobody polls is kept

  Returns { outcome, commit, entry }: outcome is
    "committed"   done
    "already"     this very commit was done before
    "superseded"  the snapshot was written after `as of`, or the flag stands: snapshot and event were not written

  Claims are served also by what is superseded: that a page showed the subject is true whatever was committed meanwhile.
  A claim that is new to a known subject gets an audience entry that names the latest event, unless that is history for
  it; where a first sight is superseded and there is no event yet, the claim stays open.
]]
local subject, token, asOf = ARGV[1], ARGV[2], tonumber(ARGV[3])

if redis.call('HGET', KEYS[1], 'token') == token then
  return { 'already', redis.call('HGET', KEYS[1], 'commit') or '0', '' }
end

local function isHistory(before, updatedAt)
  return before ~= '' and updatedAt and tonumber(updatedAt) < tonumber(before)
end

-- Claims: which of the given ones are new to this subject.
local fresh = {}
for _, claim in ipairs(cjson.decode(ARGV[8])) do
  local stored = redis.call('HGET', KEYS[2], claim.root)
  if stored ~= claim.at .. ':' .. claim.before .. ':1' then
    fresh[#fresh + 1] = claim
  end
end
local freshRoots = {}
for _, claim in ipairs(fresh) do
  freshRoots[claim.root] = true
end

local snapshotCommit = tonumber(redis.call('HGET', KEYS[1], 'commit') or '-1')
local superseded = snapshotCommit > asOf
if not superseded and ARGV[11] ~= '' then
  local flags = redis.call('HGET', KEYS[1], 'flags') or ''
  superseded = string.find('\n' .. flags .. '\n', '\n' .. ARGV[11] .. '\n', 1, true) ~= nil
end

local entry = ''
if ARGV[6] ~= '' and not superseded then
  local meta = cjson.decode(ARGV[7])
  local roots = {}
  if meta.roots then
    roots = meta.roots
  else
    for _, claim in ipairs(fresh) do
      if not isHistory(claim.before, meta.updatedAt) then
        roots[#roots + 1] = claim.root
      end
    end
    if not meta.first then
      local all = redis.call('HGETALL', KEYS[2])
      for i = 1, #all, 2 do
        local at, state = string.match(all[i + 1], '^(%d+):.*:(%d)$')
        if state == '1' and not freshRoots[all[i]] and redis.call('HGET', KEYS[7], all[i]) == at then
          roots[#roots + 1] = all[i]
        end
      end
    end
  end
  local audience = #roots == 0 and '[]' or cjson.encode(roots)
  entry = redis.call('XADD', KEYS[4], '*', 'kind', 'event', 'subject', subject, 'event', ARGV[6], 'roots', audience)
  -- An event for some claims alone is none that a later claim could be told of.
  if not meta.roots then
    redis.call('HSET', KEYS[1], 'eventId', meta.id, 'eventEntry', entry, 'eventUpdatedAt', meta.updatedAt and string.format('%.0f', meta.updatedAt) or '')
  end
elseif #fresh > 0 then
  local latest = redis.call('HMGET', KEYS[1], 'eventId', 'eventEntry', 'eventUpdatedAt')
  if latest[1] then
    local updatedAt = latest[3] ~= '' and latest[3] or false
    local roots = {}
    for _, claim in ipairs(fresh) do
      if not isHistory(claim.before, updatedAt) then
        roots[#roots + 1] = claim.root
      end
    end
    if #roots > 0 then
      redis.call('XADD', KEYS[4], '*', 'kind', 'audience', 'subject', subject, 'event', latest[1], 'entry', latest[2], 'roots', cjson.encode(roots))
    end
  elseif ARGV[6] ~= '' then
    -- A first sight that was overtaken by one without event, which was history to others: there is nothing to deliver
    -- yet to those who are entitled to it, so that their claims stay open for the next answer.
    local updatedAt = cjson.decode(ARGV[7]).updatedAt
    for _, claim in ipairs(fresh) do
      if not isHistory(claim.before, updatedAt) then
        redis.call('HSET', KEYS[2], claim.root, claim.at .. ':' .. claim.before .. ':0')
      end
    end
  end
end

-- A claim is served when it was told of the subject, or when what is known is history for it. One that is neither, for
-- this answer was dropped and no event was ever made, stays for the next answer.
local function serve()
  local told = redis.call('HEXISTS', KEYS[1], 'eventId') == 1 or entry ~= ''
  local updatedAt = redis.call('HGET', KEYS[1], 'updatedAt')
  for _, claim in ipairs(fresh) do
    local served = told or (updatedAt and updatedAt ~= '' and isHistory(claim.before, updatedAt))
    redis.call('HSET', KEYS[2], claim.root, claim.at .. ':' .. claim.before .. ':' .. (served and '1' or '0'))
  end
end

if superseded then
  serve()
  if ARGV[9] ~= '' then redis.call('ZADD', KEYS[5], 'NX', ARGV[9], subject) end
  return { 'superseded', string.format('%.0f', snapshotCommit), '' }
end

local commit = snapshotCommit
if ARGV[4] ~= '' then
  commit = redis.call('INCR', KEYS[3])
  redis.call('HSET', KEYS[1], 'commit', string.format('%.0f', commit), 'token', token, unpack(cjson.decode(ARGV[4])))
end
serve()
if ARGV[10] == '-' then
  redis.call('HDEL', KEYS[1], 'doubt')
elseif ARGV[10] ~= '' then
  redis.call('HSET', KEYS[1], 'doubt', ARGV[10])
end
if ARGV[9] ~= '' then redis.call('ZADD', KEYS[5], 'NX', ARGV[9], subject) end
if redis.call('ZSCORE', KEYS[5], subject) then
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[2])
  local counted = redis.call('HGET', KEYS[1], 'counted')
  if ARGV[5] ~= '' and counted ~= ARGV[5] then
    if counted and redis.call('HINCRBY', KEYS[6], counted, -1) <= 0 then redis.call('HDEL', KEYS[6], counted) end
    redis.call('HINCRBY', KEYS[6], ARGV[5], 1)
    redis.call('HSET', KEYS[1], 'counted', ARGV[5])
  end
else
  redis.call('PEXPIRE', KEYS[1], ARGV[12])
  redis.call('PEXPIRE', KEYS[2], ARGV[12])
end
return { 'committed', string.format('%.0f', commit), entry }
