--[[
  Drops events that wait for a suspension, or that have left the log: a part of them.

  KEYS[1] wanted     hash    root -> since when a subscription names it (ms); more keys begin with it (include/suspended.lua)

  ARGV[1] suspension; "" for whatever is older than ARGV[2]
  ARGV[2] ms; events of the log from before are dropped
  ARGV[3] what of the waiting was read last; "" to begin
  ARGV[4] how many to read
  ARGV[5] "1" to drop them, "0" only to say which they are

  Returns { where it goes on or "", member of the waiting, … }. What was dropped is listed with the time before it.
]]
local wanted = KEYS[1]
local from = ARGV[3] == '' and '-' or '(' .. ARGV[3]
local members = redis.call('ZRANGEBYLEX', wanted .. ':withheld', from, '+', 'LIMIT', 0, ARGV[4])
local time = redis.call('TIME')
local now = string.format('%016.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local found = { '' }
for _, member in ipairs(members) do
  local ms, root = string.match(member, '^%d+ (%d+)%-%d+ %S+ (.+)$')
  local isMeant
  if ARGV[1] == '' then
    isMeant = tonumber(ms) < tonumber(ARGV[2])
  else
    isMeant = redis.call('HGET', wanted .. ':suspended', root) == ARGV[1]
  end
  if isMeant then
    found[#found + 1] = member
    if ARGV[5] == '1' then
      redis.call('ZREM', wanted .. ':withheld', member)
      redis.call('ZADD', wanted .. ':dropped', 0, now .. ' ' .. member)
    end
  end
end
if #members == tonumber(ARGV[4]) then found[1] = members[#members] end
return found
