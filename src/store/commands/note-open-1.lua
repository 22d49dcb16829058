--[[
  Stores the state of a transfer of a wallet, from its own poll.

  KEYS
    open  hash  transfers of the wallet that have not ended (include/wallet-open.lua)

  ARGV
    field    text   short id of the transfer
    state    text?  its state; none where it has ended
    version  text   a version that was never given

  returns flag
]]
-- @include wallet-open
if ARGV.state == '' then
  redis.call('HDEL', KEYS.open, ARGV.field)
else
  redis.call('HSET', KEYS.open, ARGV.field, ARGV.state)
end
setOpenVersion(KEYS.open, ARGV.version)
return 1
