--[[
  Claims deliveries of one receiver for a process, with all data that sending them needs. The claim lasts until the process
  records their outcome or releases them, or until its heartbeat stops.

  KEYS
    receiver       hash    state of the receiver: see include/pace.lua
    queue          keys    base of the receiver's queue: see include/queue.lua
    events         stream  the event log
    subscriptions  hash    name -> definition

  ARGV
    process         text
    order           json  see include/claim-deliveries.lua
    deliveryPrefix  text  prefix of the receiver's delivery keys
    tracked         text  key of the definitions of subjects that are tracked by themselves

  returns
    nowMs          number   Redis time
    waitMs         number?  ms until more may be claimed; none when something else has to happen first
    subscriptions  hash     name -> text of the subscriptions that lead to the receiver
    claimed        ...[id text, fact hash, entry list of text]
                            deliveries, the fields of their facts, and those of their events' entries
]]
-- @include operator-event
-- @include pace
-- @include queue
-- @include definition
-- @include claim-deliveries
local nowMs, waitMs, texts, claimed = claimDeliveries({
  receiver = KEYS.receiver, queue = KEYS.queue, events = KEYS.events, subscriptions = KEYS.subscriptions,
  tracked = ARGV.tracked, deliveryPrefix = ARGV.deliveryPrefix,
}, ARGV.process, ARGV.order)
return { nowMs, waitMs, texts, unpack(claimed) }
