--[[
  Repairs a bounded part of a plan: every tracked member is in a place, and no time is further ahead than any that is ever set.
  Repairs are needed only after keys were lost or overwritten.

  KEYS
    plan           hash  clock of the plan (include/plan.lua)
    repairCursors  hash  place at which the last call ended, in each of the checked keys

  ARGV
    atMs   text?    time of the plan, ms; none for Redis time
    count  number   number of entries to check, about
    kinds  ...text  kinds of subjects at this endpoint group

  returns list of text
    Members that were put back.
]]
-- @include plan
local plan = openPlan(KEYS.plan, ARGV.atMs)
local key = plan.key
local kinds, isKind = { 'page', unpack(ARGV.kinds) }, {}
for _, kind in ipairs(kinds) do isKind[kind] = true end
local mended = {}

-- Returns the next part of a key, entries and their values in turn.
local function part(command, of)
  local reply = redis.call(command, key .. of, redis.call('HGET', KEYS.repairCursors, of) or '0', 'COUNT', ARGV.count)
  redis.call('HSET', KEYS.repairCursors, of, reply[1])
  return reply[2]
end

-- A member that was polled once is tracked. Its lost entry is made anew.
for _, kind in ipairs(kinds) do
  local polled = part('ZSCAN', ':polled:' .. kind)
  for i = 1, #polled, 2 do
    if track(plan, polled[i], newItem('fair', plan.v, plan.now + PLAN.LATEST_ANEW), 0) then mended[#mended + 1] = polled[i] end
  end
end

local entries = part('HSCAN', ':items')
-- This is at the slowest pace: slots may have been claimed at it.
local farthestSlotMs = lastSlot(plan, slotStep(plan, 0.25)) - plan.now
for i = 1, #entries, 2 do
  local member = entries[i]
  local lease = redis.call('ZSCORE', key .. ':leases', member)
  local resting = redis.call('ZSCORE', key .. ':resting', member)
  local failing = redis.call('ZSCORE', key .. ':failing', member)
  local suspect = redis.call('ZSCORE', key .. ':suspects', member)
  local spare = redis.call('ZSCORE', key .. sparePlace(member), member)
  local item = readItem(entries[i + 1])
  local function ahead(score, most) return score and tonumber(score) > plan.now + most + PLAN.CLOCK_SLACK end
  if not isKind[kindOf(member) or ''] then
    forget(plan, member)
  elseif isClaimed(plan, member) then
    if not lease or ahead(lease, farthestSlotMs + 2 * PLAN.LEASE + 60000) then
      redis.call('ZADD', key .. ':leases', text(plan.now + PLAN.LEASE), member)
      mended[#mended + 1] = member
    end
  elseif ahead(suspect, PLAN.LONGEST_SUSPENSION) then
    redis.call('ZADD', key .. ':suspects', text(plan.now), member)
    mended[#mended + 1] = member
  elseif
    ahead(resting, item.rest) or ahead(failing, item.rest) or ahead(spare, item.rest)
    or not (resting or failing or spare or redis.call('ZSCORE', key .. ':fair', member) or redis.call('ZSCORE', key .. ':first', member)
      or redis.call('ZSCORE', key .. ':asked', member) or suspect)
  then
    redis.call('ZREM', key .. ':leases', member)
    redis.call('ZREM', key .. ':resting', member)
    redis.call('ZREM', key .. ':failing', member)
    redis.call('ZREM', key .. sparePlace(member), member)
    item.rest = 0
    setItem(plan, member, item)
    enter(plan, member, item)
    mended[#mended + 1] = member
  end
end
return mended
