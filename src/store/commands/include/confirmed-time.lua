--[[
  The time with which something is stored that ended now, ms: Redis time, or the confirmed time (store/confirmed-time.ts) where
  Redis' clock is behind it. A clock that is behind never makes look old what has just ended.
]]
local function stampMs(clock)
  local time = redis.call('TIME')
  local confirmed = tonumber(redis.call('HGET', clock, 'confirmedMs') or '') or 0
  return math.max(time[1] * 1000 + math.floor(time[2] / 1000), confirmed)
end

-- The latest time that has certainly come, ms, by which a span is measured that no jump of a clock may end: the confirmed time,
-- or Redis time where that is behind it or nothing is confirmed yet.
local function certainMs(clock)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return math.min(now, tonumber(redis.call('HGET', clock, 'confirmedMs') or '') or now)
end
