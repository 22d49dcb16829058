--[[
  Ends the time in which Redis is behind: what a config wants is written. Reports the restore to the operator, once.

  KEYS[1] epoch    hash    of the event log
  KEYS[2] events   stream  the event log
  KEYS[3] reports  hash    how many events each subject of the daemon's own has

  ARGV[1] epoch
  ARGV[2] subject id
  ARGV[3] event id
  ARGV[4] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  Returns 1, or 0 when another process was faster.
]]
-- @include operator-event
local stored = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if stored[1] ~= ARGV[1] or stored[2] ~= 'behind' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'synchronised')
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[3], ARGV[2], 1))
appendOperatorEvent(KEYS[2], ARGV[4], { subject = ARGV[2], sequence = sequence, id = ARGV[3], from = 'ok' })
return 1
