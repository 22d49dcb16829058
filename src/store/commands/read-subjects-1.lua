--[[
  Reads many subjects at one time, and notes that those that nobody tracks were shown.

  KEYS
    plan  hash  clock of the plan of their endpointGroup (include/plan.lua)

  ARGV
    subjectPrefix  text     prefix of the keys of snapshots
    claimsPrefix   text     prefix of the keys of claims
    areShown       flag     whether a response shows them
    promised       text     key of what quotes promised of intents
    subjects       ...text  subject ids

  returns list of [snapshot hash, claims hash, polledAtMs number?, promised text]
    For each subject its fields, its claims, when it was last polled with success, and what its quote promised or "".
]]
-- @include claims
-- @include confirmed-time
-- @include ended
local replies = {}
for i = 1, #ARGV.subjects do
  local subject = ARGV.subjects[i]
  local kind = string.match(subject, '^([^:]*):')
  if
    ARGV.areShown == '1' and redis.call('EXISTS', ARGV.subjectPrefix .. subject) == 1
    and redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 0
  then
    noteEnded(ARGV.subjectPrefix .. subject, subject)
    -- Who had its state, which may have left the log, is said by the claims as they are now.
    if redis.call('HEXISTS', ARGV.subjectPrefix .. subject, 'compact') == 1 then
      currentClaims(ARGV.claimsPrefix .. subject, rootOf(ARGV.subjectPrefix .. subject, subject) .. ':wanted')
    end
  end
  replies[#replies + 1] = {
    redis.call('HGETALL', ARGV.subjectPrefix .. subject),
    redis.call('HGETALL', ARGV.claimsPrefix .. subject),
    redis.call('ZSCORE', KEYS.plan .. ':polled:' .. kind, subject) or '',
    redis.call('HGET', ARGV.promised, subject) or '',
  }
end
return replies
