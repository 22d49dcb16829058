-- Entries of the events of a subject in the log (store/event-log.ts).

-- Returns an entry of the log with all its digits, so that the order of bytes is the order of the log.
local function memberOf(entry)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  return string.rep('0', 16 - #ms) .. ms .. '-' .. string.rep('0', 20 - #count) .. count
end

-- Returns the place of the only event of a subject without a list, which its snapshot has; nil for none.
local function onlyEntry(subjectKey)
  local entry = redis.call('HGET', subjectKey, 'eventEntry')
  local ms, count = string.match(entry or '', '^(%d+)%-(%d+)|')
  return ms and #ms <= 16 and #count <= 20 and memberOf(ms .. '-' .. count) or nil
end

-- Makes the list of a subject that has had one event so far. Returns false where it has had none.
local function listEntries(entriesKey, subjectKey)
  if redis.call('EXISTS', entriesKey) == 1 then return true end
  local only = onlyEntry(subjectKey)
  if only then redis.call('ZADD', entriesKey, 0, only) end
  return only ~= nil
end

-- Removes the entries that were trimmed from the log.
local function trimEntries(entriesKey, trimmedKey)
  local trimmed = redis.call('GET', trimmedKey) or ''
  local last = string.match(trimmed, '^%d+%-%d+$') and '[' .. memberOf(trimmed) or '(0'
  redis.call('ZREMRANGEBYLEX', entriesKey, '-', last)
end
