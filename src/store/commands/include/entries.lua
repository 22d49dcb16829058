-- Entries of the events of a subject in the log (store/subject-entries.ts).

-- Returns an entry of the log with all its digits, so that the order of bytes is the order of the log.
local function memberOf(entry)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  return string.rep('0', 16 - #ms) .. ms .. '-' .. string.rep('0', 20 - #count) .. count
end

-- Removes the entries that were trimmed from the log.
local function trimEntries(entriesKey, trimmedKey)
  local trimmed = redis.call('GET', trimmedKey) or ''
  local last = string.match(trimmed, '^%d+%-%d+$') and '[' .. memberOf(trimmed) or '(0'
  redis.call('ZREMRANGEBYLEX', entriesKey, '-', last)
end
