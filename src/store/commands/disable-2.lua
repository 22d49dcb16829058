--[[
  Disables a receiver at its operator's request, with the operator's event, in one step.

  KEYS
    receiver  hash    state of the receiver: see include/pace.lua
    events    stream  the event log

  ARGV
    subject  text  subject id of the receiver
    event    text  event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  returns "ok" | "resting" | "failing" | "disabled" | "enabling" | "paused"
    The state before; a receiver that is disabled stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS.receiver)
if before == 'disabled' then return before end
disablePace({ receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject, now = timeMs() }, 'operator', ARGV.event)
return before
