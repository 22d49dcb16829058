--[[
  Opens the fact of a delivery, unless it stands.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] lease      string  fencing token of the relay

  ARGV[1] fencing token; "" when the caller is no relay (a repair or a replay)
  ARGV[2] event id
  ARGV[3] entry of the event in the log
  ARGV[4] roots of the claims that lead to the receiver, JSON array
  ARGV[5] lifetime of the fact, ms

  Returns "opened" when the fact is new and "open" when it stood: a job should exist in both cases; "done" when it was delivered or is dead, "fenced" when another process
  relays now.
]]
if ARGV[1] ~= '' and redis.call('GET', KEYS[3]) ~= ARGV[1] then return 'fenced' end
local outcome = redis.call('HGET', KEYS[1], 'outcome')
if outcome == 'delivered' or outcome == 'dead' then return 'done' end
if not outcome then
  local time = redis.call('TIME')
  local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[1], 'outcome', 'pending', 'entry', ARGV[3], 'roots', ARGV[4], 'openedAt', nowMs)
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('ZADD', KEYS[2], nowMs, ARGV[2])
  return 'opened'
end
-- Before the first attempt, whoever comes later is named in it as well; after it, its bytes stay what they were.
if not redis.call('HGET', KEYS[1], 'tries') then
  local roots, known = cjson.decode(redis.call('HGET', KEYS[1], 'roots')), {}
  for _, root in ipairs(roots) do known[root] = true end
  for _, root in ipairs(cjson.decode(ARGV[4])) do
    if not known[root] then roots[#roots + 1] = root end
  end
  redis.call('HSET', KEYS[1], 'roots', #roots == 0 and '[]' or cjson.encode(roots))
end
return 'open'
