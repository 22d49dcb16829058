--[[
  Pauses a receiver at its operator's request, with the operator's event, in one step.

  KEYS
    receiver  hash    state of the receiver: see include/pace.lua
    events    stream  the event log

  ARGV
    subject  text  subject id of the receiver
    event    text  event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  returns "ok" | "resting" | "failing" | "disabled" | "enabling" | "paused"
    The state before; a receiver that is paused, disabled or being enabled stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS.receiver)
if isHeld(before) then return before end
setState(KEYS.receiver, 'paused')
redis.call('HSET', KEYS.receiver, 'pausedAt', whole(timeMs()))
notify({ receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject }, ARGV.event, 'paused', 'operator')
return before
