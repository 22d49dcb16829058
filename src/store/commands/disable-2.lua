--[[
  Disables a receiver because its operator says so, with the operator's event, in one step.

  KEYS[1] receiver   hash    state of the receiver: see include/pace.lua
  KEYS[2] events     stream  the event log

  ARGV[1] subject id of the receiver
  ARGV[2] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  Returns the state before; a receiver that is disabled stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS[1])
if before == 'disabled' then return before end
disablePace({ receiver = KEYS[1], events = KEYS[2], subject = ARGV[1], now = timeMs() }, 'operator', ARGV[2])
return before
