--[[
  Adds what was seen of one stage on one route, or of new transfers. Sums decay forward: what is added weighs more by
  the hour, so that nothing has to be rewritten; when the weight grows out of hand, all sums are brought to a new
  landmark.

  KEYS[1] learned    hash    landmark and time of the last addition `at` (ms), e<bin>: ends, s<bin>: seconds watched
  KEYS[2] names      set     all names of which something is stored

  ARGV[1] name of the route and what is learned on it
  ARGV[2] half-life, ms
  ARGV[3] hash of the confirmed time
  ARGV[4] how many names there may be
  ARGV[5] weight at which sums are brought to a new landmark
  ARGV[6..] bin, ends, seconds, for each bin

  Returns 1, or 0 when there are too many names for a new one.
]]
-- @include confirmed-time
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then
  if redis.call('SCARD', KEYS[2]) >= tonumber(ARGV[4]) then return 0 end
  redis.call('SADD', KEYS[2], ARGV[1])
end
local landmark = tonumber(redis.call('HGET', KEYS[1], 'landmark') or nowMs)
local weight = 2 ^ ((nowMs - landmark) / tonumber(ARGV[2]))
if weight >= tonumber(ARGV[5]) then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if all[i] ~= 'landmark' and all[i] ~= 'at' then
      redis.call('HSET', KEYS[1], all[i], string.format('%.17g', tonumber(all[i + 1]) / weight))
    end
  end
  landmark = nowMs
  weight = 1
end
redis.call('HSET', KEYS[1], 'landmark', string.format('%.0f', landmark))
for i = 6, #ARGV, 3 do
  redis.call('HINCRBYFLOAT', KEYS[1], 'e' .. ARGV[i], string.format('%.17g', tonumber(ARGV[i + 1]) * weight))
  redis.call('HINCRBYFLOAT', KEYS[1], 's' .. ARGV[i], string.format('%.17g', tonumber(ARGV[i + 2]) * weight))
end
redis.call('HSET', KEYS[1], 'at', string.format('%.0f', stampMs(ARGV[3])))
redis.call('PERSIST', KEYS[1])
return 1
