--[[
  Notes events behind the cursor of a receiver whose retention has ended: no delivery of them will be opened.

  KEYS[1] receiver   hash    state of the receiver
  KEYS[2] dropped    list    see include/dropped.lua
  KEYS[3] cursors    hash    receiver -> entry

  ARGV[1] receiver
  ARGV[2] its cursor when they were read
  ARGV[3] entry up to which others were noted before; "" for none
  ARGV[4] entry up to which these go
  ARGV[5] why they are dropped
  ARGV[6..] ids of the events that the receiver matches

  Returns 1; 0 where the cursor has moved, or another process has noted some, meanwhile.
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include dropped
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
if (redis.call('HGET', KEYS[1], 'droppedTo') or '') ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], 'droppedTo', ARGV[4])
for i = 6, #ARGV do noteDrop(KEYS[1], KEYS[2], ARGV[5], ARGV[i]) end
return 1
