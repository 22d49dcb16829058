--[[
  Whether a surface of the upstream may be asked. While it is unreachable or unauthorized, one poll in a while probes it
  and the others wait.

  KEYS[1] health     hash    state, failures, since, probe

  ARGV[1] interval of the probes, ms

  Returns 0 when the caller may ask, else the milliseconds until the next probe.
]]
local state = redis.call('HGET', KEYS[1], 'state')
if not state or state == 'ok' then return 0 end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local probeMs = tonumber(redis.call('HGET', KEYS[1], 'probe') or '0')
if nowMs >= probeMs then
  redis.call('HSET', KEYS[1], 'probe', string.format('%.0f', nowMs + tonumber(ARGV[1])))
  return 0
end
return probeMs - nowMs
