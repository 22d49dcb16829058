--[[
  Moves a consumer along the event log, never back.

  KEYS
    consumers  hash  consumer -> `<name of the log>|<entry up to which it has taken it>`

  ARGV
    consumer  text
    log       text    name of the log
    entry     text
    most      number  how many consumers are stored

  returns "kept" | "behind" | "full"
    "behind" when it stands there or further on already; "full" when no more consumers can be stored.
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
return 'kept'
