--[[
  Gives a member a turn where one is free, or keeps the one that it has.

  KEYS
    sweepTurns  zset  member -> until when its turn lasts, ms

  ARGV
    member  text
    turnMs  number  how long a turn lasts, ms
    most    number  how many there are at once

  returns flag
    False where none is free.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV.turnMs)
redis.call('ZREMRANGEBYSCORE', KEYS.sweepTurns, '-inf', string.format('%.0f', now))
-- A turn that lasts longer than any was given by a clock that was wrong.
redis.call('ZREMRANGEBYSCORE', KEYS.sweepTurns, string.format('(%.0f', now + lease), '+inf')
if not redis.call('ZSCORE', KEYS.sweepTurns, ARGV.member) and redis.call('ZCARD', KEYS.sweepTurns) >= tonumber(ARGV.most) then return 0 end
redis.call('ZADD', KEYS.sweepTurns, string.format('%.0f', now + lease), ARGV.member)
return 1
