--[[
  Keeps, once, when a subscription began to name a root on the upstream's clock.

  KEYS[1] since      hash    root -> "<at ms>:<seconds>"

  ARGV[1] root
  ARGV[2] at, ms of Redis time
  ARGV[3] the same moment on the upstream's clock, seconds, as this process would have it

  Returns the seconds that count: those of the first process to say.
]]
local stored = redis.call('HGET', KEYS[1], ARGV[1])
if stored then
  local at, seconds = string.match(stored, '^(%d+):(%-?%d+)$')
  if at == ARGV[2] then return seconds end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
return ARGV[3]
