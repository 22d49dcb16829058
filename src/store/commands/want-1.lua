--[[
  Notes that a subscription names a subject, unless it already does.

  KEYS[1] wanted     hash    root -> since when a subscription names it (ms)

  ARGV[1] root

  Returns since when the subscription names it, in ms of Redis time.
]]
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored and string.match(stored, '^%d+$') then return stored end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], ARGV[1], now)
return now
