--[[
  Ends what is suspended: nobody wants these roots any more. Their events still wait, to be dropped.

  KEYS[1] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[2] since      hash    root -> the same moment on the upstream's clock

  ARGV[1] suspension
  ARGV[2..] roots

  Returns how many were still of this suspension and wanted.
]]
local ended = 0
for i = 2, #ARGV do
  local root = ARGV[i]
  if redis.call('HGET', KEYS[1] .. ':suspended', root) == ARGV[1] then
    redis.call('HDEL', KEYS[2], root)
    ended = ended + redis.call('HDEL', KEYS[1], root)
  end
end
return ended
