--[[
  Begins to enable a disabled receiver. The relay does the rest: see src/queues/deliveries/relay.ts.

  KEYS
    receiver  hash  state of the receiver: see include/pace.lua

  returns "ok" | "resting" | "failing" | "disabled" | "enabling" | "paused"
    The state before; a receiver that is not disabled stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS.receiver)
if before == 'disabled' then setState(KEYS.receiver, 'enabling') end
return before
