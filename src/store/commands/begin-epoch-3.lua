--[[
  Begins the next epoch on a Redis that went back, once however many notice it. Nothing is committed in it until what a config
  wants is written (see end-epoch-3.lua).

  KEYS[1] epoch    hash    of the event log
  KEYS[2] events   stream  the event log
  KEYS[3] commit   string  the commit counter

  ARGV[1] epoch that was found; "0" for none
  ARGV[2] the next one
  ARGV[3] commits that were seen
  ARGV[4] newest entry of the log that was seen
  ARGV[5] digest of the newest config that was seen
  ARGV[6] ms of the last tick that was seen
  ARGV[7] reason

  Returns 1, or 0 when another process was faster. Later commits and entries have greater numbers than any that were seen:
  answers under way are superseded, and places of readers stay good.
]]
local stored = redis.call('HMGET', KEYS[1], 'epoch', 'tickMs')
if (stored[1] or '0') ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call(
  'HSET', KEYS[1], 'epoch', ARGV[2], 'state', 'behind', 'atMs', now, 'digest', ARGV[5],
  'lostFromMs', stored[2] or '', 'lostUntilMs', ARGV[6], 'reason', ARGV[7]
)
local counter = redis.call('GET', KEYS[3]) or '0'
if not string.match(counter, '^%d+$') or tonumber(counter) < tonumber(ARGV[3]) then redis.call('SET', KEYS[3], ARGV[3]) end
local function parsed(entry)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(count)
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  local log = redis.call('XINFO', 'STREAM', KEYS[2])
  for index = 1, #log, 2 do
    if log[index] == 'last-generated-id' then
      local ms, count = parsed(log[index + 1])
      local seenMs, seenCount = parsed(ARGV[4])
      if seenMs > ms or (seenMs == ms and seenCount > count) then redis.call('XSETID', KEYS[2], ARGV[4]) end
    end
  end
end
return 1
