--[[
  Ends what is suspended: nobody wants these roots any more. Their events still wait, to be dropped.

  KEYS
    wanted  hash  root -> since when a subscription names it (ms)
    since   hash  root -> the same moment on the upstream's clock

  ARGV
    suspension  text
    keys        ...text  subscription keys

  returns number
    How many were still of this suspension and wanted.
]]
local ended = 0
for i = 1, #ARGV.keys do
  local root = ARGV.keys[i]
  if redis.call('HGET', KEYS.wanted .. ':suspended', root) == ARGV.suspension then
    redis.call('HDEL', KEYS.since, root)
    ended = ended + redis.call('HDEL', KEYS.wanted, root)
  end
end
return ended
