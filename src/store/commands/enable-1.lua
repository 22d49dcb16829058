--[[
  Has a disabled receiver enabled. The relay does the rest: see queues/resumption.ts.

  KEYS[1] receiver   hash    state of the receiver: see store/receivers.ts

  Returns the state before; a receiver that is not disabled stays as it is.
]]
local before = redis.call('HGET', KEYS[1], 'state') or 'ok'
if before == 'disabled' then redis.call('HSET', KEYS[1], 'state', 'enabling') end
return before
