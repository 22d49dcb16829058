--[[
  The time with which something is stored that ended now, ms: Redis time, or the confirmed time (store/confirmed-time.ts) where
  Redis' clock is behind it. A clock that is behind never makes look old what has just ended.
]]
local function stampMs(clock)
  local time = redis.call('TIME')
  local confirmed = tonumber(redis.call('HGET', clock, 'confirmedMs') or '') or 0
  return math.max(time[1] * 1000 + math.floor(time[2] / 1000), confirmed)
end
