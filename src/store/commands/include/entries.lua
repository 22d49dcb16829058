-- Where the events of a subject are in the log (store/subject-entries.ts).

-- An entry of the log with all its digits, so that the order of bytes is the order of the log.
local function memberOf(entry)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  return string.rep('0', 16 - #ms) .. ms .. '-' .. string.rep('0', 20 - #count) .. count
end

-- The list goes with the log: what was trimmed leaves it.
local function trimEntries(entriesKey, trimmedKey)
  local trimmed = redis.call('GET', trimmedKey) or ''
  local last = string.match(trimmed, '^%d+%-%d+$') and '[' .. memberOf(trimmed) or '(0'
  redis.call('ZREMRANGEBYLEX', entriesKey, '-', last)
end
