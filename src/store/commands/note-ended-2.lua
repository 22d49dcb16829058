--[[
  Marks a subject as ended: nothing names it any more.

  KEYS
    subject  hash  snapshot
    plan     hash  clock of the plan of the subject's endpointGroup (include/plan.lua)

  ARGV
    subject  text  subject id

  returns flag
    False where it is tracked: the end of its tracking marks it.
]]
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
if redis.call('HEXISTS', KEYS.plan .. ':items', ARGV.subject) == 1 then return 0 end
restoreCompact(prefixOf(KEYS.subject, ARGV.subject), ARGV.subject)
noteEnded(KEYS.subject, ARGV.subject)
return 1
