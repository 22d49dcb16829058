--[[
  Reads many subjects at one time, and notes that those that nobody tracks were shown.

  KEYS[1] plan       hash    clock of the plan of their endpointGroup (include/plan.lua)

  ARGV[1] prefix of the keys of snapshots
  ARGV[2] prefix of the keys of claims
  ARGV[3] "1" where a response shows them, else ""
  ARGV[4] promised hash  key of what quotes promised of intents
  ARGV[5..] subject ids

  Returns { snapshot fields, claims, when it was last looked at with success or "", what was promised or "" } for each.
]]
-- @include claims
-- @include confirmed-time
-- @include ended
local replies = {}
for i = 5, #ARGV do
  local subject = ARGV[i]
  local kind = string.match(subject, '^([^:]*):')
  if
    ARGV[3] == '1' and redis.call('EXISTS', ARGV[1] .. subject) == 1
    and redis.call('HEXISTS', KEYS[1] .. ':items', subject) == 0
  then
    noteEnded(ARGV[1] .. subject, subject)
    -- Who had its state, which may have left the log, is said by the claims as they are now.
    if redis.call('HEXISTS', ARGV[1] .. subject, 'compact') == 1 then
      currentClaims(ARGV[2] .. subject, rootOf(ARGV[1] .. subject, subject) .. ':wanted')
    end
  end
  replies[#replies + 1] = {
    redis.call('HGETALL', ARGV[1] .. subject),
    redis.call('HGETALL', ARGV[2] .. subject),
    redis.call('ZSCORE', KEYS[1] .. ':polled:' .. kind, subject) or '',
    redis.call('HGET', ARGV[4], subject) or '',
  }
end
return replies
