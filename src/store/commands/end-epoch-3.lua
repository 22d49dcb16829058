--[[
  Ends the state "behind" of Redis: the config is synchronised. Reports the restore to the operator, once.

  KEYS
    epoch    hash    epoch of the event log
    events   stream  the event log
    reports  hash    number of events of each subject of the daemon's own

  ARGV
    epoch    number
    subject  text    subject id
    id       text    event id
    event    text    event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)

  returns flag
    False when another process did so first.
]]
-- @include operator-event
local stored = redis.call('HMGET', KEYS.epoch, 'epoch', 'state')
if stored[1] ~= ARGV.epoch or stored[2] ~= 'behind' then return 0 end
redis.call('HSET', KEYS.epoch, 'state', 'synchronised')
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS.reports, ARGV.subject, 1))
appendOperatorEvent(KEYS.events, ARGV.event, { subject = ARGV.subject, sequence = sequence, id = ARGV.id, from = 'ok' })
return 1
