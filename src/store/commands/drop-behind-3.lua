--[[
  Stores dropped events behind the cursor of a receiver: their retention has ended, and no delivery of them will be opened.

  KEYS
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua
    cursors   hash  receiver -> entry

  ARGV
    receiver  text
    cursor    text     its cursor at the time of their read
    from      text?    entry up to which events were stored before
    to        text     entry up to which these events go
    reason    text     reason of the drop
    events    ...text  ids of the events that the receiver matches

  returns flag
    False where the cursor has moved, or another process has stored some, meanwhile.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
local at = redis.call('HGET', KEYS.cursors, ARGV.receiver)
if not at or not string.match(at, '^%d+%-%d+$') then at = '0-0' end
if at ~= ARGV.cursor then return 0 end
if (redis.call('HGET', KEYS.receiver, 'droppedTo') or '') ~= ARGV.from then return 0 end
redis.call('HSET', KEYS.receiver, 'droppedTo', ARGV.to)
for i = 1, #ARGV.events do noteDrop(KEYS.receiver, KEYS.dropped, ARGV.reason, ARGV.events[i]) end
return 1
