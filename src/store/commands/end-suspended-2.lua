--[[
  Ends suspended subscription keys: no subscription wants them any more. Their events still wait, to be dropped.

  KEYS
    wanted  hash  subscription key -> time from which a subscription names it (ms); others begin with it
    since   hash  subscription key -> the same time on the upstream's clock

  ARGV
    suspension  text
    keys        ...text  subscription keys

  returns number
    Number of keys that were still wanted and of this suspension.
]]
local ended = 0
for i = 1, #ARGV.keys do
  local claimKey = ARGV.keys[i]
  if redis.call('HGET', KEYS.wanted .. ':suspended', claimKey) == ARGV.suspension then
    redis.call('HDEL', KEYS.since, claimKey)
    redis.call('HDEL', KEYS.wanted .. ':begun', claimKey)
    ended = ended + redis.call('HDEL', KEYS.wanted, claimKey)
  end
end
return ended
