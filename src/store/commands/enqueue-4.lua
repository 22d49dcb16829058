--[[
  Opens the fact of a delivery, unless it stands.

  KEYS[1] delivery   hash    facts of the delivery
  KEYS[2] pending    zset    the receiver's open deliveries
  KEYS[3] lease      string  fencing token of the relay
  KEYS[4] last       string  the newest delivery of the same subject to this receiver

  ARGV[1] fencing token of the relay
  ARGV[2] delivery id
  ARGV[3] entry of the event in the log
  ARGV[4] roots of the claims that lead to the receiver, JSON array
  ARGV[5] lifetime of the fact, ms
  ARGV[6] prefix of the receiver's delivery keys
  ARGV[7] "1" when the deliveries of one subject follow each other, else ""
  ARGV[8] id of the replay; "" for a delivery that is none
  ARGV[9] prefix of replay keys

  Returns "opened" when the fact is new and "open" when it stood: a job should exist in both cases; "opened-waiting" and
  "waiting" when it waits for the delivery before it, whose end queues it; "done" when it was delivered or is dead,
  "fenced" when another process relays now.
]]
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return 'fenced' end
local outcome = redis.call('HGET', KEYS[1], 'outcome')
if outcome == 'delivered' or outcome == 'dead' then return 'done' end

local function waits()
  local after = redis.call('HGET', KEYS[1], 'after')
  return after and redis.call('HGET', ARGV[6] .. after, 'outcome') == 'pending'
end

if not outcome then
  local time = redis.call('TIME')
  local nowMs = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  redis.call('HSET', KEYS[1], 'outcome', 'pending', 'entry', ARGV[3], 'roots', ARGV[4], 'openedAt', nowMs)
  if ARGV[7] == '1' then
    -- The chain is kept whether or not the one before has ended: a dead letter can be opened again.
    local before = redis.call('GET', KEYS[4])
    if before and redis.call('EXISTS', ARGV[6] .. before) == 1 then
      redis.call('HSET', KEYS[1], 'after', before)
      redis.call('HSET', ARGV[6] .. before, 'next', ARGV[2])
    end
    redis.call('SET', KEYS[4], ARGV[2], 'PX', ARGV[5])
  end
  if ARGV[8] ~= '' then
    redis.call('HSET', KEYS[1], 'replay', ARGV[8])
    redis.call('HINCRBY', ARGV[9] .. ARGV[8], 'opened', 1)
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('ZADD', KEYS[2], nowMs, ARGV[2])
  return waits() and 'opened-waiting' or 'opened'
end
-- Before the first attempt, whoever comes later is named in it as well; after it, its bytes stay what they were.
if not redis.call('HGET', KEYS[1], 'tries') then
  local read, roots = pcall(cjson.decode, redis.call('HGET', KEYS[1], 'roots') or '')
  if not read or type(roots) ~= 'table' then roots = {} end
  local known = {}
  for _, root in ipairs(roots) do known[root] = true end
  for _, root in ipairs(cjson.decode(ARGV[4])) do
    if not known[root] then roots[#roots + 1] = root end
  end
  redis.call('HSET', KEYS[1], 'entry', ARGV[3], 'roots', #roots == 0 and '[]' or cjson.encode(roots))
end
return waits() and 'waiting' or 'open'
