--[[
  Reports dropped deliveries of a receiver to the operator where that is due: one event names up to its limit, of one reason.

  KEYS
    receiver  hash    state of the receiver
    dropped   list    see include/dropped.lua
    events    stream  the event log

  ARGV
    subject    text  subject id of the receiver
    isFurther  flag  true for a further event of a report that has begun
    reasons    ...(reason text, event text)
                     `reason` may be reported now, `event` is its event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM%, "%COUNT%" and
                     "%DELIVERIES%" to be filled in)

  returns or nothing
    reason      "retention" | "away" | "lost"
    count       number                         number of dropped deliveries
    deliveries  ...text                        deliveries that are named

  Nothing where nothing is due, or where the first reason may not be reported yet.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local now = timeMs()
local reportedAt = pastOf(KEYS.receiver, 'reportedDropsAt', now)
if ARGV.isFurther ~= '1' and reportedAt and now - reportedAt < DROPS.APART_MS then return {} end
local reason, ids = nil, {}
for _, noted in ipairs(redis.call('LRANGE', KEYS.dropped, 0, DROPS.NAMED - 1)) do
  local why, id = string.match(noted, '^([^|]*)|(.*)$')
  reason = reason or why
  if why ~= reason then break end
  ids[#ids + 1] = id
end
local event
for i = 1, #ARGV.reasons do event = ARGV.reasons[i].reason == reason and ARGV.reasons[i].event or event end
if not event then return {} end
redis.call('LTRIM', KEYS.dropped, #ids, -1)
redis.call('HSET', KEYS.receiver, 'reportedDropsAt', whole(now))
local count = #ids
if redis.call('EXISTS', KEYS.dropped) == 0 then
  count = count + (numberOf(KEYS.receiver, 'droppedMore') or 0)
  redis.call('HDEL', KEYS.receiver, 'droppedMore')
end
local template = string.gsub(event, '"%%COUNT%%"', whole(count))
local named = cjson.encode(ids)
template = string.gsub(template, '"%%DELIVERIES%%"', function() return named end)
notify({ receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject }, template, 'events_dropped', '')
return { reason, whole(count), unpack(ids) }
