--[[
  Moves a consumer along the event log, never back.

  KEYS[1] consumers  hash    consumer -> `<name of the log>|<entry up to which it has taken it>`

  ARGV[1] consumer
  ARGV[2] name of the log
  ARGV[3] entry
  ARGV[4] how many consumers are stored

  Returns "kept", "behind" when it stands there or further on already, or "full" when no more consumers can be stored.
]]
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if not stored and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then return 'full' end
local log, ms, place = string.match(stored or '', '^(.*)|(%d+)%-(%d+)$')
local newMs, newPlace = string.match(ARGV[3], '^(%d+)%-(%d+)$')
if log == ARGV[2] then
  local isSame = tonumber(ms) == tonumber(newMs)
  if tonumber(ms) > tonumber(newMs) or (isSame and tonumber(place) >= tonumber(newPlace)) then return 'behind' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '|' .. ARGV[3])
return 'kept'
