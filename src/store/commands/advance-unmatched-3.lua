--[[
  Moves the place up to which events without a receiver are counted, and lists such events. A place that another process
  moved meanwhile stays, so that each entry is counted once.

  KEYS[1] place      string  entry of the event log
  KEYS[2] unmatched  zset    "<entry>|<reason>", all with score 0: the entry's numbers are padded, so bytes order by them
  KEYS[3] lease      string  fencing token of the relay

  ARGV[1] fencing token
  ARGV[2] entry from which was read, "0-0" for the beginning
  ARGV[3] entry to which the place moves
  ARGV[4] how many are listed at most; where more come, the oldest go
  ARGV[5...] members

  Returns 1, or 0 when another process relays now, or has counted these.
]]
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 0 end
if (redis.call('GET', KEYS[1]) or '0-0') ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3])
for index = 5, #ARGV do redis.call('ZADD', KEYS[2], 0, ARGV[index]) end
if #ARGV >= 5 then redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[4])) end
return 1
