--[[
  Reads many subjects at one moment, and keeps the finished ones among them: what a page still shows must not expire, or
  it would be seen for the first time again.

  KEYS[1] plan       hash    clock of the plan of their surface (include/plan.lua)

  ARGV[1] prefix of the keys of snapshots
  ARGV[2] prefix of the keys of claims
  ARGV[3] time for which a subject is kept that nobody tracks, ms
  ARGV[4] promised hash  key of what quotes promised of intents
  ARGV[5..] subject ids

  Returns { snapshot fields, claims, when it was last looked at with success or "", what was promised or "" } for each.
]]
local replies = {}
for i = 5, #ARGV do
  local subject = ARGV[i]
  local kind = string.match(subject, '^([^:]*):')
  redis.call('PEXPIRE', ARGV[1] .. subject, ARGV[3], 'GT')
  redis.call('PEXPIRE', ARGV[2] .. subject, ARGV[3], 'GT')
  replies[#replies + 1] = {
    redis.call('HGETALL', ARGV[1] .. subject),
    redis.call('HGETALL', ARGV[2] .. subject),
    redis.call('ZSCORE', KEYS[1] .. ':looked:' .. kind, subject) or '',
    redis.call('HGET', ARGV[4], subject) or '',
  }
end
return replies
