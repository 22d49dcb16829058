-- The state of the clocks, as `clocksOf` in store/confirmed-time.ts parses it.
local LONGEST_WAIT_MS = 3600000

local function readClock(key)
  local time = redis.call('TIME')
  local names = { 'confirmedMs', 'state', 'moves', 'heldFromMs', 'jumpMs', 'upstreamMs', 'waits' }
  local values = redis.call('HMGET', key, unpack(names))
  for index = 1, #names do values[index] = values[index] or '' end
  local confirmed, heldFrom = tonumber(values[1]) or 0, tonumber(values[4])
  local isHeld = (heldFrom and confirmed - heldFrom < LONGEST_WAIT_MS) or values[7] == '1'
  values[7] = isHeld and '1' or '0'
  return { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), unpack(values) }
end
