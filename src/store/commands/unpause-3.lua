--[[
  Has attempts made again to a paused receiver, with the operator's event, in one step.

  KEYS[1] receiver   hash    state of the receiver: see include/pace.lua
  KEYS[2] events     stream  the event log
  KEYS[3] wakes      stream  receivers with something to do

  ARGV[1] receiver
  ARGV[2] subject id of the receiver
  ARGV[3] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM%, %BY%, %SINCE% to be filled in)

  Returns the state before; a receiver that is not paused stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS[1])
if before ~= 'paused' then return before end
setState(KEYS[1], 'ok')
tell({ receiver = KEYS[1], events = KEYS[2], subject = ARGV[2] }, ARGV[3], 'resumed', 'operator')
wake(KEYS[3], ARGV[1])
return before
