--[[
  Claims deliveries of one receiver for a process. The claim lasts until the process records their outcome or releases them, or
  until its heartbeat stops.

  KEYS
    receiver       hash    state of the receiver: see include/pace.lua
    queue          keys    base of the receiver's queue: see include/queue.lua
    subscriptions  hash    name -> definition
    wakes          stream  receivers with something to do
    senders        zset    process -> time until which it counts as alive, ms

  ARGV
    process         text
    receiver        text
    order           json  see include/claim-deliveries.lua
    deliveryPrefix  text  prefix of the receiver's delivery keys
    tracked         text  key of the definitions of subjects that are tracked by themselves

  returns
    nowMs          number   Redis time
    waitMs         number?  ms until more may be claimed; none when something else has to happen first
    subscriptions  hash     name -> text of the subscriptions that lead to the receiver
    claimed        ...[id text, fact hash]  deliveries, and the fields of their facts
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include definition
-- @include claim-deliveries
local nowMs, waitMs, texts, claimed, returned = claimDeliveries({
  receiver = KEYS.receiver, queue = KEYS.queue, subscriptions = KEYS.subscriptions, tracked = ARGV.tracked,
  deliveryPrefix = ARGV.deliveryPrefix,
}, ARGV.process, ARGV.order)
if returned > 0 then wakeOthers(KEYS.wakes, KEYS.senders, KEYS.queue .. ':due', ARGV.receiver, ARGV.process) end
return { nowMs, waitMs, texts, unpack(claimed) }
