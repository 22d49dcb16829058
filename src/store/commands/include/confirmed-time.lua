--[[
  Returns the stored time of an end that happens now, ms: Redis time, or the confirmed time (store/confirmed-time.ts) where
  Redis' clock is behind it. So a clock that is behind never makes a recent end appear old.
]]
local function stampMs(clock)
  local time = redis.call('TIME')
  local confirmed = tonumber(redis.call('HGET', clock, 'confirmedMs') or '') or 0
  return math.max(time[1] * 1000 + math.floor(time[2] / 1000), confirmed)
end

-- Returns the latest time that has certainly come, ms: the confirmed time, or Redis time where that is behind it or nothing is
-- confirmed yet. It measures spans that no jump of a clock may end.
local function certainMs(clock)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  return tonumber(redis.call('HGET', clock, 'confirmedMs') or '') or now
end
