--[[
  Adds observations of one stage on one route, or of new transfers. Sums decay forward: later additions weigh more, so that
  nothing has to be rewritten. When the weight grows too large, all sums are scaled to a new landmark.

  KEYS
    learned       hash  landmark and time of the last addition `at` (ms), e<bin>: ends, s<bin>: seconds watched
    learnedNames  set   all names with stored sums

  ARGV
    name           text    name of the route and of the learned statistic
    halfLifeMs     number  half-life, ms
    clock          text    hash of the confirmed time
    mostNames      number  limit of names
    largestWeight  number  weight at which sums are scaled to a new landmark
    increments     ...(bin number, ended number, watchedSeconds number)

  returns flag
    False when there are too many names for a new one.
]]
-- @include confirmed-time
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('SISMEMBER', KEYS.learnedNames, ARGV.name) == 0 then
  if redis.call('SCARD', KEYS.learnedNames) >= tonumber(ARGV.mostNames) then return 0 end
  redis.call('SADD', KEYS.learnedNames, ARGV.name)
end
local landmark = tonumber(redis.call('HGET', KEYS.learned, 'landmark') or nowMs)
local weight = 2 ^ ((nowMs - landmark) / tonumber(ARGV.halfLifeMs))
if weight >= tonumber(ARGV.largestWeight) then
  local all = redis.call('HGETALL', KEYS.learned)
  for i = 1, #all, 2 do
    if all[i] ~= 'landmark' and all[i] ~= 'at' then
      redis.call('HSET', KEYS.learned, all[i], string.format('%.17g', tonumber(all[i + 1]) / weight))
    end
  end
  landmark = nowMs
  weight = 1
end
redis.call('HSET', KEYS.learned, 'landmark', string.format('%.0f', landmark))
for i = 1, #ARGV.increments do
  local ended, seconds = ARGV.increments[i].ended, ARGV.increments[i].watchedSeconds
  redis.call('HINCRBYFLOAT', KEYS.learned, 'e' .. ARGV.increments[i].bin, string.format('%.17g', tonumber(ended) * weight))
  redis.call('HINCRBYFLOAT', KEYS.learned, 's' .. ARGV.increments[i].bin, string.format('%.17g', tonumber(seconds) * weight))
end
redis.call('HSET', KEYS.learned, 'at', string.format('%.0f', stampMs(ARGV.clock)))
return 1
