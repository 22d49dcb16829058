--[[
  Keeps, once, when a subscription began to name a root on the upstream's clock.

  KEYS[1] since      hash    root -> "<at ms>:<seconds>"

  ARGV[1] root
  ARGV[2] at, ms of Redis time
  ARGV[3] the upstream's clock at an answer that has just come, ms; "" when it told none

  Returns the seconds that count: those of the first process to say. The upstream tells whole seconds and the answer
  took a while, so that the moment comes out early rather than late: a doubtful change is told, not taken for history.
]]
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored then
  local at, seconds = string.match(stored, '^(%d+):(%-?%d+)$')
  if at == ARGV[2] then return seconds end
end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local aheadMs = ARGV[3] == '' and 0 or tonumber(ARGV[3]) - nowMs
-- No clock is off by a day: with such a one all that is to come would be history, for ever.
if math.abs(aheadMs) > 86400000 then aheadMs = 0 end
local seconds = string.format('%.0f', math.floor((tonumber(ARGV[2]) + aheadMs) / 1000))
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ':' .. seconds)
return seconds
