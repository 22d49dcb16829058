--[[
  Reads Redis time and what is known of the clocks, from the node that has the key.

  KEYS
    clock  hash  the confirmed time, see store/confirmed-time.ts

  returns
    redisMs      number  Redis time
    confirmedMs  text?   the rest as it is stored: the confirmed time
    state        text
    moves        text    counts the moves to `steady`
    heldFromMs   text?   since when it is held
    jumpMs       text?   by how much Redis time jumped
    upstreamMs   text?   how far the upstream is ahead of Redis
    isHeld       flag    whether something waits for the clocks
]]
-- @include read-clock
return readClock(KEYS.clock)
