--[[
  Moves the poll of a subject that something else has just shown to a later time. Until it comes, it asks for nothing.

  KEYS[1] due        zset    subjects that are polled, by the time of their next poll
  KEYS[2] demand     hash    subject -> rate at which it would be asked for at a price of 1, per second
  KEYS[3] total      string  sum of the demand of all subjects
  KEYS[4] own        hash    subject -> when a poll of its own ended last, or the first move away from it (ms)

  ARGV[1] subject id
  ARGV[2] next poll, ms after now
  ARGV[3] ms after its own last poll beyond which it is not moved: what shows it may have stopped moving itself

  A subject that is not polled, or whose poll comes later anyway, keeps its time. Returns the ms until the poll when it
  was moved, else "".
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local own = redis.call('HGET', KEYS[4], ARGV[1])
if not own then
  own = nowMs
  redis.call('HSET', KEYS[4], ARGV[1], string.format('%.0f', nowMs))
end
local dueMs = math.min(nowMs + tonumber(ARGV[2]), tonumber(own) + tonumber(ARGV[3]))
if dueMs <= nowMs then return '' end
local demand = redis.call('HGET', KEYS[2], ARGV[1])
if demand then
  redis.call('HDEL', KEYS[2], ARGV[1])
  redis.call('INCRBYFLOAT', KEYS[3], string.format('%.17g', -tonumber(demand)))
end
if redis.call('ZADD', KEYS[1], 'XX', 'GT', 'CH', string.format('%.0f', dueMs), ARGV[1]) == 0 then return '' end
return string.format('%.0f', dueMs - nowMs)
