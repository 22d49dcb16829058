--[[
  Removes processes whose claims others have, but not those that have sent a heartbeat since.

  KEYS
    senders    zset  process -> time until which it counts as alive, ms
    instances  hash  process -> its instance, and `beats:<process>` -> number of its heartbeats

  ARGV
    processes  ...text

  returns number
    Number of removed processes.
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = 0
for index = 1, #ARGV.processes do
  local untilMs = tonumber(redis.call('ZSCORE', KEYS.senders, ARGV.processes[index]) or '')
  if not untilMs or untilMs < now then
    redis.call('ZREM', KEYS.senders, ARGV.processes[index])
    redis.call('HDEL', KEYS.instances, ARGV.processes[index], 'beats:' .. ARGV.processes[index])
    count = count + 1
  end
end
return count
