--[[
  Stores the transfers of a transaction or a quote that a response has shown.

  KEYS
    transfers  hash  transfer -> time at which a response first showed it here, ms

  ARGV
    transfers  ...text

  returns
    newestMs   number?  time at which a new one was last shown
    transfers  ...text  all transfers that were shown
]]
-- Far more than one transaction pays: invented transfers beyond that are not stored.
local MOST = 1000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local nowText = string.format('%.0f', now)
for i = 1, #ARGV.transfers do
  if redis.call('HLEN', KEYS.transfers) >= MOST then break end
  redis.call('HSETNX', KEYS.transfers, ARGV.transfers[i], nowText)
end
local reply, newest = { '' }, nil
local all = redis.call('HGETALL', KEYS.transfers)
for i = 1, #all, 2 do
  local at = tonumber(all[i + 1])
  -- A time ahead was written by a clock that was wrong.
  if not at or at > now then
    at = now
    redis.call('HSET', KEYS.transfers, all[i], nowText)
  end
  newest = math.max(newest or at, at)
  reply[#reply + 1] = all[i]
end
if newest then reply[1] = string.format('%.0f', newest) end
return reply
