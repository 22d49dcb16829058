--[[
  Holds a bounded part of a plan against itself: whatever is tracked stands somewhere, and no time lies further ahead than
  any that is ever set. Nothing of this happens unless keys were lost or written by something else.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] cursor     string  where the last call ended

  ARGV[1] the plan's time, ms; "" for that of Redis
  ARGV[2] how many to look through, about

  Returns the members that were put back.
]]
-- @include plan
local plan = openPlan(KEYS[1], ARGV[1])
local key = plan.key
local reply = redis.call('HSCAN', key .. ':items', redis.call('GET', KEYS[2]) or '0', 'COUNT', ARGV[2])
redis.call('SET', KEYS[2], reply[1])
local mended = {}
-- At the slowest pace, for slots that were handed out at it.
local farthestSlotMs = lastSlot(plan, slotStep(plan, 0.25)) - plan.now
for i = 1, #reply[2], 2 do
  local member = reply[2][i]
  local lease = redis.call('ZSCORE', key .. ':leases', member)
  local resting = redis.call('ZSCORE', key .. ':resting', member)
  local failing = redis.call('ZSCORE', key .. ':failing', member)
  local item = readItem(reply[2][i + 1])
  local function ahead(score, most) return score and tonumber(score) > plan.now + most + PLAN.CLOCK_SLACK end
  if isClaimed(plan, member) then
    if not lease or ahead(lease, farthestSlotMs + 2 * PLAN.LEASE + 60000) then
      redis.call('ZADD', key .. ':leases', text(plan.now + PLAN.LEASE), member)
      mended[#mended + 1] = member
    end
  elseif
    ahead(resting, item.rest) or ahead(failing, item.rest)
    or not (resting or failing or redis.call('ZSCORE', key .. ':fair', member) or redis.call('ZSCORE', key .. ':first', member)
      or redis.call('ZSCORE', key .. ':asked', member) or redis.call('ZSCORE', key .. ':suspects', member))
  then
    redis.call('ZREM', key .. ':leases', member)
    redis.call('ZREM', key .. ':resting', member)
    redis.call('ZREM', key .. ':failing', member)
    item.rest = 0
    setItem(plan, member, item)
    enter(plan, member, item)
    mended[#mended + 1] = member
  end
end
return mended
