--[[
  Stores dropped events behind the cursor of a receiver, whose retention has ended, and moves the cursor past them: no delivery of
  them will be opened.

  KEYS
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua
    cursors   hash  receiver -> entry

  ARGV
    receiver        text
    deliveryPrefix  text     prefix of the receiver's delivery keys
    from            text     its cursor at the time of their read
    to              text     entry up to which these events go
    reason          text     reason of the drop
    events          ...text  ids of the events that the receiver matches, one for each entry that states a match

  returns number?
    Number of dropped events; none where the cursor has moved meanwhile. An event that has a delivery, opened by an earlier entry,
    is not dropped.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include delivered
-- @include dropped
-- @include cursor
if cursorOf(KEYS.cursors, ARGV.receiver) ~= ARGV.from then return '' end
local isNoted, count = {}, 0
for i = 1, #ARGV.events do
  local id = ARGV.events[i]
  if not isNoted[id] and not outcomeOf(ARGV.deliveryPrefix, id) then
    noteDrop(KEYS.receiver, KEYS.dropped, ARGV.reason, id)
    isNoted[id], count = true, count + 1
  end
end
redis.call('HSET', KEYS.cursors, ARGV.receiver, ARGV.to)
return count
