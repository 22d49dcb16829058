--[[
  Makes the due moves of subjects that are no longer tracked (see store/ended-subjects.ts).

  KEYS
    ended            zset  subject -> time from which it is in its state, ms
    plan             hash  clock of the plan of the endpoint group of these subjects (include/plan.lua)
    wanted           hash  subscription key -> time from which a subscription names it (ms)
    changedSubjects  zset  subject -> time of its last change, ms

  ARGV
    confirmedMs    number   confirmed time, ms
    retentionMs    number   retention, ms
    subjectPrefix  text     prefix of the keys of snapshots
    subjects       ...text

  returns
    compacted  number  number of subjects that were made compact
    removed    number  number of removed subjects
]]
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
-- @include entries
local confirmed, retention, subjectPrefix = tonumber(ARGV.confirmedMs), tonumber(ARGV.retentionMs), ARGV.subjectPrefix
-- A held subject may be named, or shown, for years: it is checked once a day.
local heldUntil = confirmed - retention + math.min(retention, 86400000)
local compacted, removed = 0, 0

local function text(ms) return string.format('%.0f', ms) end

local function moveTo(subject, atMs) redis.call('ZADD', KEYS.ended, text(atMs), subject) end

-- What holds a subject: "named" for itself; "found" by a quote, job or vault that is named; "shown", as far as is known, on the
-- pages of a wallet: no sweep that began after `shownAt` has read all of them; else nothing.
local function holderOf(prefix, subject, shownAt)
  local holder
  local current = currentClaims(prefix .. ':claims:' .. subject, KEYS.wanted)
  for i = 1, #current, 2 do
    local named = string.match(current[i], '^[^|]*|(.*)$') or ''
    if named == subject then return 'named' end
    if string.sub(named, 1, 7) ~= 'wallet:' then
      holder = 'found'
    else
      local swept = tonumber(redis.call('HGET', prefix .. ':pages:' .. named, 'readAtMs') or '') or 0
      if swept <= shownAt or swept > confirmed then holder = holder or 'shown' end
    end
  end
  return holder
end

local function compact(prefix, subject, shownAt)
  local key = subjectPrefix .. subject
  local compacted = { 'compact', '1', 'shownAtMs', text(shownAt) }
  local fields = redis.call('HMGET', key, 'eventId', unpack(COMPACT))
  -- This marks that there was an event for all: it has expired from the log.
  if fields[1] then
    compacted[#compacted + 1] = 'eventId'
    compacted[#compacted + 1] = ''
  end
  for index, field in ipairs(COMPACT) do
    local value = fields[index + 1]
    if value and value ~= '' then
      compacted[#compacted + 1] = field
      compacted[#compacted + 1] = value
    end
  end
  listEntries(prefix .. ':entries:' .. subject, key)
  redis.call('DEL', key)
  redis.call('HSET', key, unpack(compacted))
  redis.call('ZREM', KEYS.changedSubjects, subject)
  trimEntries(prefix .. ':entries:' .. subject, prefix .. ':events:trimmed')
end

local function remove(prefix, subject)
  for _, of in ipairs({ ':subject:', ':claims:', ':transfers-of:', ':entries:', ':pages:', ':open:' }) do
    redis.call('DEL', prefix .. of .. subject)
  end
  redis.call('ZREM', KEYS.ended, subject)
  redis.call('ZREM', KEYS.changedSubjects, subject)
  removed = removed + 1
end

local function settle(subject)
  local key = subjectPrefix .. subject
  local prefix = prefixOf(key, subject)
  local since = tonumber(redis.call('ZSCORE', KEYS.ended, subject) or '') or readCompact(prefix, subject)
  if not since or since > confirmed - retention then return end
  restoreCompact(prefix, subject)
  local stored = redis.call('HMGET', key, 'compact', 'shownAtMs', 'absentAtMs')
  local isCompact = stored[1] ~= false
  local shownAt = isCompact and tonumber(stored[2] or '') or since
  local holder = holderOf(prefix, subject, shownAt)
  if holder == 'named' or redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 1 then
    redis.call('ZREM', KEYS.ended, subject)
    return
  end
  if redis.call('EXISTS', key) == 0 then return remove(prefix, subject) end
  if not isCompact then
    compact(prefix, subject, shownAt)
    compacted = compacted + 1
  elseif stored[3] and not holder then
    return remove(prefix, subject)
  end
  if holder then
    moveTo(subject, heldUntil)
  else
    local now = stampMs(prefix .. ':clock')
    redis.call('HSET', key, 'absentAtMs', text(now))
    moveTo(subject, now)
  end
  packCompact(prefix, subject)
end

for index = 1, #ARGV.subjects do settle(ARGV.subjects[index]) end
return { compacted, removed }
