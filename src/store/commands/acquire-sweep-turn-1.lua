--[[
  Gives a member a free turn, or renews its own.

  KEYS
    sweepTurns  zset  member -> end of its turn, ms

  ARGV
    member  text
    turnMs  number  length of a turn, ms
    most    number  limit of turns at once

  returns flag
    False where no turn is free.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV.turnMs)
redis.call('ZREMRANGEBYSCORE', KEYS.sweepTurns, '-inf', string.format('%.0f', now))
-- A turn that lasts longer than any was set by a wrong clock.
redis.call('ZREMRANGEBYSCORE', KEYS.sweepTurns, string.format('(%.0f', now + lease), '+inf')
if not redis.call('ZSCORE', KEYS.sweepTurns, ARGV.member) and redis.call('ZCARD', KEYS.sweepTurns) >= tonumber(ARGV.most) then return 0 end
redis.call('ZADD', KEYS.sweepTurns, string.format('%.0f', now + lease), ARGV.member)
return 1
