--[[
  Lengthens the pause of a surface of the upstream; a shorter pause never overwrites a longer one.

  KEYS[1] pause      string  until when the surface must not be asked, ms

  ARGV[1] the pause asked for, ms from now

  Returns the milliseconds for which the surface is to pause from now.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local untilMs = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), nowMs + tonumber(ARGV[1]))
if untilMs > nowMs then redis.call('SET', KEYS[1], string.format('%.0f', untilMs), 'PX', untilMs - nowMs) end
return untilMs - nowMs
