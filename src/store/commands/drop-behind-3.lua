--[[
  Stores dropped events behind the cursor of a receiver: their retention has ended, and no delivery of them will be opened.

  KEYS
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua
    cursors   hash  receiver -> entry

  ARGV
    receiver        text
    deliveryPrefix  text     prefix of the receiver's delivery keys
    cursor          text     its cursor at the time of their read
    from            text?    entry up to which events were stored before
    to              text     entry up to which these events go
    reason          text     reason of the drop
    events          ...text  ids of the events that the receiver matches, one for each entry that states a match

  returns number?
    Number of dropped events; none where the cursor has moved, or another process has stored some, meanwhile. An event that has a
    delivery, opened by an earlier entry, is not dropped.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include delivered
-- @include dropped
local at = redis.call('HGET', KEYS.cursors, ARGV.receiver)
if not at or not string.match(at, '^%d+%-%d+$') then at = '0-0' end
if at ~= ARGV.cursor then return '' end
if (redis.call('HGET', KEYS.receiver, 'droppedTo') or '') ~= ARGV.from then return '' end
redis.call('HSET', KEYS.receiver, 'droppedTo', ARGV.to)
local isNoted, count = {}, 0
for i = 1, #ARGV.events do
  local id = ARGV.events[i]
  if not isNoted[id] and not outcomeOf(ARGV.deliveryPrefix, id) then
    noteDrop(KEYS.receiver, KEYS.dropped, ARGV.reason, id)
    isNoted[id], count = true, count + 1
  end
end
return count
