--[[
  Reports to the operator what a receiver has lost, where that is due: in one event as many as it may name, of one reason.

  KEYS[1] receiver   hash    state of the receiver
  KEYS[2] dropped    list    see include/dropped.lua
  KEYS[3] events     stream  the event log

  ARGV[1] subject id of the receiver
  ARGV[2] "1" for a further event of a report that has begun
  ARGV[3..] reason that may be reported now, and its event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM%, "%COUNT%" and "%DELIVERIES%" to be filled in), ...

  Returns { reason, how many were lost, ids of those that are named... }; nothing where nothing is due, or what comes first may
  not be reported yet.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local now = timeMs()
local reportedAt = pastOf(KEYS[1], 'reportedDropsAt', now)
if ARGV[2] ~= '1' and reportedAt and now - reportedAt < DROPS.APART_MS then return {} end
local reason, ids = nil, {}
for _, noted in ipairs(redis.call('LRANGE', KEYS[2], 0, DROPS.NAMED - 1)) do
  local why, id = string.match(noted, '^([^|]*)|(.*)$')
  reason = reason or why
  if why ~= reason then break end
  ids[#ids + 1] = id
end
local event
for i = 3, #ARGV, 2 do event = ARGV[i] == reason and ARGV[i + 1] or event end
if not event then return {} end
redis.call('LTRIM', KEYS[2], #ids, -1)
redis.call('HSET', KEYS[1], 'reportedDropsAt', whole(now))
local count = #ids
if redis.call('EXISTS', KEYS[2]) == 0 then
  count = count + (numberOf(KEYS[1], 'droppedMore') or 0)
  redis.call('HDEL', KEYS[1], 'droppedMore')
end
local template = string.gsub(event, '"%%COUNT%%"', whole(count))
local named = cjson.encode(ids)
template = string.gsub(template, '"%%DELIVERIES%%"', function() return named end)
tell({ receiver = KEYS[1], events = KEYS[3], subject = ARGV[1] }, template, 'events_dropped', '')
return { reason, whole(count), unpack(ids) }
