--[[
  Gives a member a turn where one is free, or keeps the one that it has.

  KEYS[1] turns      zset    member -> until when its turn lasts, ms

  ARGV[1] member
  ARGV[2] how long a turn lasts, ms
  ARGV[3] how many there are at once

  Returns 1; 0 where none is free.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lease = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
-- A turn that lasts longer than any was given by a clock that was wrong.
redis.call('ZREMRANGEBYSCORE', KEYS[1], string.format('(%.0f', now + lease), '+inf')
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], string.format('%.0f', now + lease), ARGV[1])
return 1
