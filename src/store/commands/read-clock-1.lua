--[[
  Reads Redis time and what is known of the clocks, from the node that has the key.

  KEYS[1] clock    hash    the confirmed time, see store/confirmed-time.ts

  Returns { now (ms), confirmed time, state, moves, since when it is held, by how much it jumped, how far the upstream is ahead
  of Redis, whether something waits for the clocks }; "" for what there is not.
]]
-- @include read-clock
return readClock(KEYS[1])
