--[[
  Lists the places of a subject's events in the log, the newest first.

  KEYS
    subjectEntries  zset  the places (see store/event-log.ts)
    subject         hash  snapshot

  ARGV
    max    text    end of the range, as in ZRANGE BYLEX
    min    text    begin of the range
    count  number  limit

  returns list of text
    Members of the list, or the place of the only event.
]]
-- @include entries
local key = KEYS.subjectEntries
if redis.call('EXISTS', key) == 1 then
  return redis.call('ZRANGE', key, ARGV.max, ARGV.min, 'BYLEX', 'REV', 'LIMIT', 0, ARGV.count)
end
local only = onlyEntry(KEYS.subject)
local isBefore = only and (ARGV.max == '+' or '(' .. only < ARGV.max)
return isBefore and (ARGV.min == '-' or '[' .. only >= ARGV.min) and { only } or {}
