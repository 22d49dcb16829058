--[[
  Drops a part of the events that wait for a suspension, or that have expired from the log.

  KEYS
    wanted  hash  subscription key -> time from which it is named (ms); more keys begin with it (include/suspended.lua)

  ARGV
    suspension  text    suspension; "" for all events older than `beforeMs`
    beforeMs    number  ms; events of the log from before this time are dropped
    from        text    waiting event that was read last; "" to begin
    count       number  number of events to read
    isDropped   flag    true to drop them; else they are only listed

  returns
    next     text     place of the next call; "" at the end
    members  ...text

  A dropped event is listed with the time in front of it.
]]
local wanted = KEYS.wanted
local from = ARGV.from == '' and '-' or '(' .. ARGV.from
local members = redis.call('ZRANGEBYLEX', wanted .. ':withheld', from, '+', 'LIMIT', 0, ARGV.count)
local time = redis.call('TIME')
local now = string.format('%016.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local found = { '' }
for _, member in ipairs(members) do
  local ms, claimKey = string.match(member, '^%d+ (%d+)%-%d+ %S+ (.+)$')
  local isMeant
  if ARGV.suspension == '' then
    isMeant = tonumber(ms) < tonumber(ARGV.beforeMs)
  else
    isMeant = redis.call('HGET', wanted .. ':suspended', claimKey) == ARGV.suspension
  end
  if isMeant then
    found[#found + 1] = member
    if ARGV.isDropped == '1' then
      redis.call('ZREM', wanted .. ':withheld', member)
      redis.call('ZADD', wanted .. ':dropped', 0, now .. ' ' .. member)
    end
  end
end
if #members == tonumber(ARGV.count) then found[1] = members[#members] end
return found
