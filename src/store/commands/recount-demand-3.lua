--[[
  Sums the demand of one surface anew, so that what rounding or a crash left in the running sum does not stay.

  KEYS[1] demand     hash    subject -> rate at which it would be asked for at a price of 1, per second
  KEYS[2] total      string  sum of the demand of all subjects
  KEYS[3] due        zset    subjects that are polled

  Drops what is not polled any more. Returns the number of subjects.
]]
local sum, count = 0, 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if redis.call('ZSCORE', KEYS[3], all[i]) then
    sum = sum + tonumber(all[i + 1])
    count = count + 1
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
redis.call('SET', KEYS[2], string.format('%.17g', sum))
return count
