--[[
  Moves the poll of a subject that something else has just shown to a later time. Until it comes, it asks for nothing.

  KEYS[1] due        zset    subjects that are polled, by the time of their next poll
  KEYS[2] demand     hash    subject -> rate at which it would be asked for at a price of 1, per second
  KEYS[3] total      string  sum of the demand of all subjects

  ARGV[1] subject id
  ARGV[2] next poll, ms after now

  A subject that is not polled, or whose poll comes later anyway, keeps its time. Returns 1 when it was moved.
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local demand = redis.call('HGET', KEYS[2], ARGV[1])
if demand then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('INCRBYFLOAT', KEYS[3], string.format('%.17g', -tonumber(demand)))
end
return redis.call('ZADD', KEYS[1], 'XX', 'GT', 'CH', string.format('%.0f', nowMs + tonumber(ARGV[2])), ARGV[1])
