--[[
  Notes events behind the cursor of a receiver whose retention has ended: no delivery of them will be opened.

  KEYS
    receiver  hash  state of the receiver
    dropped   list  see include/dropped.lua
    cursors   hash  receiver -> entry

  ARGV
    receiver  text
    cursor    text     its cursor when they were read
    from      text?    entry up to which others were noted before
    to        text     entry up to which these go
    reason    text     why they are dropped
    events    ...text  ids of the events that the receiver matches

  returns flag
    False where the cursor has moved, or another process has noted some, meanwhile.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
if redis.call('HGET', KEYS.cursors, ARGV.receiver) ~= ARGV.cursor then return 0 end
if (redis.call('HGET', KEYS.receiver, 'droppedTo') or '') ~= ARGV.from then return 0 end
redis.call('HSET', KEYS.receiver, 'droppedTo', ARGV.to)
for i = 1, #ARGV.events do noteDrop(KEYS.receiver, KEYS.dropped, ARGV.reason, ARGV.events[i]) end
return 1
