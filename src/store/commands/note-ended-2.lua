--[[
  Notes that nobody names a subject any more.

  KEYS[1] subject    hash    snapshot
  KEYS[2] plan       hash    clock of the plan of the subject's endpointGroup (include/plan.lua)

  ARGV[1] subject id

  Returns 1; 0 where it is tracked: the end of its tracking notes that.
]]
-- @include confirmed-time
-- @include ended
if redis.call('HEXISTS', KEYS[2] .. ':items', ARGV[1]) == 1 then return 0 end
noteEnded(KEYS[1], ARGV[1])
return 1
