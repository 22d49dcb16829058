--[[
  Moves a consumer along the event log, never back.

  KEYS
    consumers  hash  consumer -> `<name of the log>|<entry that it has acknowledged>`

  ARGV
    consumer  text
    log       text    name of the log
    entry     text
    most      number  limit of stored consumers

  returns "stored" | "behind" | "full"
    "behind" when its entry is the same or later already; "full" when no more consumers can be stored.
]]
local stored = redis.call('HGET', KEYS.consumers, ARGV.consumer)
if not stored and redis.call('HLEN', KEYS.consumers) >= tonumber(ARGV.most) then return 'full' end
local log, ms, place = string.match(stored or '', '^(.*)|(%d+)%-(%d+)$')
local newMs, newPlace = string.match(ARGV.entry, '^(%d+)%-(%d+)$')
if log == ARGV.log then
  local isSame = tonumber(ms) == tonumber(newMs)
  if tonumber(ms) > tonumber(newMs) or (isSame and tonumber(place) >= tonumber(newPlace)) then return 'behind' end
end
redis.call('HSET', KEYS.consumers, ARGV.consumer, ARGV.log .. '|' .. ARGV.entry)
return 'stored'
