--[[
  Compact states of ended subjects that only wallets claim. Each is one member of a hash, a quarter of the bytes of its keys.
  Needs include/ended.lua and include/shorten.lua before it.

  <prefix>:compact  hash  short subject -> cmsgpack of these values:
                          - the time from which it is in its state, ms; by how much `shownAtMs` and `absentAtMs` are before it
                          - true where there was an event for all
                          - the fields of COMPACT, `pendingSince` by how much it is before `updatedAt`
                          - for each claim its short key, by how much its start is before that time, ms, and by how much the
                            time before which all is history is before its start, s

  Such a subject has neither a snapshot nor claims of its own, and is in no plan nor in `ended`. A script that finds no snapshot
  restores it before it writes to it.
]]
-- Fields of a compact snapshot: status and time recognise the state, the marks its events.
local COMPACT = { 'sequence', 'status', 'updatedAt', 'pendingSince', 'flags', 'emitted', 'epoch', 'commit' }
local MOST_COMPACT_CLAIMS = 20

-- Returns a number where its text is exactly this one: it takes fewer bytes.
local function shortNumber(text)
  local number = tonumber(text)
  local isExact = number and math.abs(number) <= 2 ^ 53 and text ~= '-0' and string.format('%.0f', number) == text
  return isExact and number or text
end

local function longNumber(value) return type(value) == 'number' and string.format('%.0f', value) or value end

-- Returns by how much a number in a text is before another; the text where it is none that comes back exactly.
local function relative(base, text)
  local number = shortNumber(text)
  local isNear = type(base) == 'number' and type(number) == 'number' and math.abs(base) < 2 ^ 50 and math.abs(number) < 2 ^ 50
  return isNear and base - number or text
end

local function absolute(base, value) return type(value) == 'number' and longNumber(base - value) or value end

-- Returns the values of a compact subject in the order above; nil where only its own keys can hold it.
local function compactValues(since, fields, claims)
  local stored, count = {}, 0
  for i = 1, #fields, 2 do
    stored[fields[i]], count = fields[i + 1], count + 1
  end
  local shownAt, absentAt = tonumber(stored.shownAtMs), tonumber(stored.absentAtMs)
  if not since or stored.compact ~= '1' or not shownAt or #claims > 2 * MOST_COMPACT_CLAIMS then return nil end
  local values = { since, since - shownAt, absentAt and since - absentAt or false, stored.eventId == '' }
  count = count - 2 - (absentAt and 1 or 0) - (stored.eventId == '' and 1 or 0)
  for _, field in ipairs(COMPACT) do
    local value = stored[field]
    if field == 'emitted' then
      values[#values + 1] = value and shortenMarks(value) or false
    elseif field == 'pendingSince' then
      values[#values + 1] = value and relative(shortNumber(stored.updatedAt or ''), value) or false
    else
      values[#values + 1] = value and shortNumber(value) or false
    end
    if value then count = count - 1 end
  end
  -- Any other field, as one of another version, is more than these values hold.
  if count ~= 0 then return nil end
  for i = 1, #claims, 2 do
    local at, before = string.match(claims[i + 1], '^(%d+):(%-?%d*):1$')
    if not at or not string.find(claims[i], '^[^|]*|wallet:') or string.format('%.0f', at) ~= at then return nil end
    values[#values + 1] = shorten(claims[i])
    values[#values + 1] = since - at
    values[#values + 1] = relative(math.floor(at / 1000), before)
  end
  return values
end

-- Moves a compact subject into the hash, where that can hold it.
local function packCompact(prefix, subject)
  local key, claimsKey = prefix .. ':subject:' .. subject, prefix .. ':claims:' .. subject
  if redis.call('HEXISTS', prefix .. ':plan:open-status:items', 'open-status:' .. subject) == 1 then return end
  local since = tonumber(redis.call('ZSCORE', prefix .. ':ended', subject) or '')
  local values = compactValues(since, redis.call('HGETALL', key), redis.call('HGETALL', claimsKey))
  if not values then return end
  redis.call('HSET', prefix .. ':compact', shorten(subject), cmsgpack.pack(unpack(values)))
  redis.call('DEL', key, claimsKey)
  redis.call('ZREM', prefix .. ':ended', subject)
end

-- Returns what `readCompact` does. An error where the values are not those of a compact subject.
local function unpackCompact(packed)
  local values = { cmsgpack.unpack(packed) }
  local since, behind = values[1], 5 + #COMPACT
  local fields, claims = { 'compact', '1', 'shownAtMs', longNumber(since - values[2]) }, {}
  local function add(list, field, value)
    assert(type(field) == 'string' and type(value) == 'string')
    list[#list + 1] = field
    list[#list + 1] = value
  end
  if values[3] then add(fields, 'absentAtMs', longNumber(since - values[3])) end
  if values[4] then add(fields, 'eventId', '') end
  for index, field in ipairs(COMPACT) do
    local value = values[4 + index]
    if value then
      if field == 'emitted' then value = expand(value) end
      if field == 'pendingSince' then value = absolute(values[7], value) end
      add(fields, field, longNumber(value))
    end
  end
  while values[behind] do
    local at = since - values[behind + 1]
    local before = absolute(math.floor(at / 1000), values[behind + 2])
    add(claims, expand(values[behind]), longNumber(at) .. ':' .. before .. ':1')
    behind = behind + 3
  end
  return since, fields, claims
end

-- Returns the time from which a compact subject is in its state (nil for one that is not in the hash), its fields and its claims, as
-- names and values in turn. An unreadable one counts as reported: nobody is notified of it as new.
local function readCompact(prefix, subject)
  local packed = redis.call('HGET', prefix .. ':compact', shorten(subject))
  if not packed then return nil end
  local isReadable, since, fields, claims = pcall(unpackCompact, packed)
  if isReadable then return since, fields, claims end
  return 0, { 'compact', '1', 'shownAtMs', '0', 'eventId', '' }, {}
end

-- Gives a compact subject its keys back. Returns true for one that was in the hash and has no snapshot.
local function restoreCompact(prefix, subject)
  local since, fields, claims = readCompact(prefix, subject)
  if not since then return false end
  redis.call('HDEL', prefix .. ':compact', shorten(subject))
  local key, claimsKey = prefix .. ':subject:' .. subject, prefix .. ':claims:' .. subject
  if redis.call('EXISTS', key) == 1 then return false end
  redis.call('HSET', key, unpack(fields))
  -- A claim that was stored meanwhile is newer.
  for i = 1, #claims, 2 do redis.call('HSETNX', claimsKey, claims[i], claims[i + 1]) end
  redis.call('ZADD', prefix .. ':ended', 'GT', longNumber(since), subject)
  return true
end
