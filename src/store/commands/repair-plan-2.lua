--[[
  Repairs a bounded part of a plan: every tracked member is in a place, and no time is further ahead than any that is ever set.
  Repairs are needed only after keys were lost or overwritten. The number of commands does not grow with that of the members.

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

local checked = { ':items' }
for _, kind in ipairs(kinds) do checked[#checked + 1] = ':polled:' .. kind end
local cursors, moved = redis.call('HMGET', KEYS.repairCursors, unpack(checked)), {}

-- Returns the next part of a key: its entries, and the value of each. It begins anew at a place that SCAN would refuse.
local function part(command, index)
  local reply = redis.pcall(command, key .. checked[index], cursors[index] or '0', 'COUNT', ARGV.count)
  if reply.err then reply = redis.call(command, key .. checked[index], '0', 'COUNT', ARGV.count) end
  moved[#moved + 1] = checked[index]
  moved[#moved + 1] = reply[1]
  local entries, values = {}, {}
  for i = 1, #reply[2], 2 do
    entries[#entries + 1] = reply[2][i]
    values[#values + 1] = reply[2][i + 1]
  end
  return entries, values
end

local function itemsOf(of, members)
  local items = {}
  for from = 1, #members, 1000 do
    local some = redis.call('HMGET', key .. of, unpack(members, from, math.min(from + 999, #members)))
    for _, item in ipairs(some) do items[#items + 1] = item end
  end
  return items
end

-- A member that was polled once is tracked. Its lost entry is made anew.
for index = 2, #checked do
  local polled = part('ZSCAN', index)
  local items = itemsOf(':items', polled)
  for i, member in ipairs(polled) do
    local isLost = not items[i]
    if isLost and track(plan, member, newItem('fair', plan.v, plan.now + PLAN.LATEST_ANEW), 0) then mended[#mended + 1] = member end
  end
end

local members, items = part('HSCAN', 1)
redis.call('HSET', KEYS.repairCursors, unpack(moved))
local claims = itemsOf(':claims', members)
local scores = {}
for _, place in ipairs({ ':leases', ':resting', ':failing', ':suspects', ':fair', ':first', ':requested', ':spare', ':spareWallets' }) do
  scores[place] = scoresOf(key .. place, members)
end
-- This is at the slowest pace: slots may have been claimed at it.
local farthestSlotMs = lastSlot(plan, slotStep(plan, 0.25)) - plan.now
for i, member in ipairs(members) do
  local function scoreIn(place) return scores[place][i] end
  local lease, resting, failing, suspect = scoreIn(':leases'), scoreIn(':resting'), scoreIn(':failing'), scoreIn(':suspects')
  local spare = scoreIn(sparePlace(member))
  local item = readItem(items[i])
  local function ahead(score, most) return score and tonumber(score) > plan.now + most + PLAN.CLOCK_SLACK end
  if not isKind[kindOf(member) or ''] then
    removeMember(plan, member)
  elseif claims[i] then
    if not lease or ahead(lease, farthestSlotMs + 2 * PLAN.LEASE + 60000) then
      redis.call('ZADD', key .. ':leases', text(plan.now + PLAN.LEASE), member)
      mended[#mended + 1] = member
    end
  elseif ahead(suspect, PLAN.LONGEST_SUSPENSION) then
    redis.call('ZADD', key .. ':suspects', text(plan.now), member)
    mended[#mended + 1] = member
  elseif
    ahead(resting, item.rest) or ahead(failing, item.rest) or ahead(spare, item.rest)
    or not (resting or failing or spare or scoreIn(':fair') or scoreIn(':first') or scoreIn(':requested') or suspect)
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
