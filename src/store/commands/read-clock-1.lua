--[[
  Reads Redis time and the state of the clocks, from the node that has the key.

  KEYS
    clock  hash  the confirmed time, see store/confirmed-time.ts

  returns
    redisMs      number  Redis time
    confirmedMs  text?   stored confirmed time; the fields below are stored too
    state        text
    moves        text    counts the moves to `steady`
    heldFromMs   text?   time from which it is held
    jumpMs       text?   ms by which Redis time jumped
    upstreamMs   text?   ms by which the upstream is ahead of Redis
    isHeld       flag    true when something waits for the clocks
]]
-- @include read-clock
return readClock(KEYS.clock)
