--[[
  Ends the pause of a receiver, with the operator's event, in one step.

  KEYS
    receiver  hash    state of the receiver: see include/pace.lua
    events    stream  the event log
    wakes     stream  receivers with something to do

  ARGV
    receiver  text
    subject   text  subject id of the receiver
    event     text  event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  returns "ok" | "resting" | "failing" | "disabled" | "enabling" | "paused"
    The state before; a receiver that is not paused stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS.receiver)
if before ~= 'paused' then return before end
setState(KEYS.receiver, 'ok')
notify({ receiver = KEYS.receiver, events = KEYS.events, subject = ARGV.subject }, ARGV.event, 'resumed', 'operator')
wake(KEYS.wakes, ARGV.receiver)
return before
