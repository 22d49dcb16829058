--[[
  Dropped deliveries of a receiver, which will never be made, and their reports. Everything that drops a delivery stores it
  here in the same step. Needs include/pace.lua and include/queue.lua before it.

  | State   | While                                          | Leaves it                                              |
  |---------|------------------------------------------------|--------------------------------------------------------|
  | quiet   | nothing is stored                              | a delivery is dropped ─► due, or waiting               |
  | due     | something is stored, and the last report began | a check appends events of up to NAMED deliveries until |
  |         | APART_MS ago or earlier                        | nothing is stored ─► quiet. Drops as `away` are        |
  |         |                                                | reported once the receiver is in the config again      |
  | waiting | something is stored, and the last report began | its time has passed ─► due                             |
  |         | less than APART_MS ago                         |                                                        |

  <dropped>  list  `<reason>|<delivery id>`, at most MOST_NOTED; more are counted alone
  The hash of the receiver has `droppedMore` (their number) and `reportedDropsAt` (ms, when a report began last).
]]
local DROPS = { APART_MS = 3600000, NAMED = 100, MOST_NOTED = 10000 }

local function noteDrop(receiver, dropped, reason, id)
  if redis.call('LLEN', dropped) < DROPS.MOST_NOTED then redis.call('RPUSH', dropped, reason .. '|' .. id)
  else add(receiver, 'droppedMore', 1) end
end

-- Ends an open delivery that will never be made, and queues the one that waited for it. One that waits for another stays: the next of
-- its subject would go before that. `open` is { pending, queue, prefix, replays, receiver, dropped }.
local function dropDelivery(open, id, reason)
  local key = open.prefix .. id
  if waitsForAnother(key, open.prefix) or redis.call('ZREM', open.pending, id) == 0 then return false end
  local replay, next = unpack(redis.call('HMGET', key, 'replay', 'next'))
  takeOff(open.queue, id)
  redis.call('DEL', key)
  if replay and redis.call('EXISTS', open.replays .. replay) == 1 then add(open.replays .. replay, 'dead', 1) end
  if next and redis.call('HGET', open.prefix .. next, 'outcome') == 'pending' and not isQueued(open.queue, next) then
    setDue(open.queue, next, open.prefix .. next)
  end
  noteDrop(open.receiver, open.dropped, reason, id)
  return true
end
