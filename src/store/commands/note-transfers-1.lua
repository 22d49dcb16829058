--[[
  Notes the transfers that an answer has shown of a transaction or a quote.

  KEYS
    transfers  hash  transfer -> when an answer first showed it here, ms

  ARGV
    transfers  ...text

  returns
    newestMs   number?  when it last showed a new one
    transfers  ...text  all that were shown
]]
-- Far more than one transaction pays: what an answer makes up beyond that is not noted.
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
redis.call('PERSIST', KEYS.transfers)
return reply
