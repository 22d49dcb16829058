--[[
  Has a disabled receiver enabled. The relay does the rest: see src/queues/deliveries/relay-round.ts.

  KEYS[1] receiver   hash    state of the receiver: see include/pace.lua

  Returns the state before; a receiver that is not disabled stays as it is.
]]
-- @include operator-event
-- @include pace
local before = stateOf(KEYS[1])
if before == 'disabled' then setState(KEYS[1], 'enabling') end
return before
