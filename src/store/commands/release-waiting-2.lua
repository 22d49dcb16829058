--[[
  Appends to the log a part of the events that waited for a suspension which has come back, for its subscription keys alone.

  KEYS
    wanted  hash    subscription key -> time from which it is named (ms); more keys begin with it (include/suspended.lua)
    events  stream  the event log

  ARGV
    suspension  text    suspension, "back:<ms>"
    from        text    waiting event that was read last; "" to begin
    count       number  number of events to read

  returns
    next      text    place of the next call; "" where nothing waits any more
    released  number  number of events that were put into the log

  Where nothing waits any more the suspension ends in the same step, so that later events come behind those that waited.
]]
-- @include claims
-- @include suspended
local wanted, suspension = KEYS.wanted, ARGV.suspension
local from = ARGV.from == '' and '-' or '(' .. ARGV.from
local members = redis.call('ZRANGEBYLEX', wanted .. ':withheld', from, '+', 'LIMIT', 0, ARGV.count)

-- True when a key counts for some of the receivers of another one.
local function isPartOf(other, claimKey)
  local subscription, subject = string.match(claimKey, '^([^|>]*)(|.*)$')
  return subscription and string.sub(other, 1, #subscription + 1) == subscription .. '>'
    and string.sub(other, -#subject) == subject
end

-- True when an entry of the log is behind another one. Times would not do: a clock that jumps back moves no entry.
local function isBehind(entry, other)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  local otherMs, otherCount = string.match(other, '^(%d+)%-(%d+)$')
  if ms ~= otherMs then return tonumber(ms) > tonumber(otherMs) end
  return tonumber(count) > tonumber(otherCount)
end

-- Returns the keys that get the event of one: itself with its parts, or those that continue it. One that began anew after
-- the event, beside parts with the start from before, has new receivers: the event waited for none of them.
local function heirs(claimKey, place)
  local startMs = tonumber(redis.call('HGET', wanted, claimKey) or '')
  local begun = startMs and redis.call('HGET', wanted .. ':begun', claimKey)
  local others = {}
  for other in string.gmatch(redis.call('HGET', wanted .. ':continued', claimKey) or '', '\n([^\n]+)') do
    local at = redis.call('HGET', wanted, other)
    if at and (not startMs or (isPartOf(other, claimKey) and (begun or tonumber(at) < startMs))) then others[#others + 1] = other end
  end
  if startMs and (#others == 0 or not begun or isBehind(place, begun)) then table.insert(others, 1, claimKey) end
  return others
end

local released, entry, event, claimKeys = 0, nil, nil, {}
local function flush()
  if #claimKeys > 0 then
    redis.call(
      'XADD', KEYS.events, '*', 'v', SCHEMA_VERSION, 'kind', 'subscribers', 'event', event, 'entry', entry,
      'claimKeys', cjson.encode(claimKeys), 'suspended', '1'
    )
    released = released + 1
  end
  claimKeys = {}
end

for _, member in ipairs(members) do
  local number, place, id, claimKey = string.match(member, '^(%d+) (%d+%-%d+) (%S+) (.+)$')
  if redis.call('HGET', wanted .. ':suspended', claimKey) == suspension then
    -- The keys of one event follow each other.
    if place ~= entry then flush() end
    entry, event = place, id
    for _, heir in ipairs(heirs(claimKey, place)) do
      local other = suspensionOf(wanted, heir)
      if other and other ~= suspension then
        redis.call('ZADD', wanted .. ':withheld', 0, number .. ' ' .. place .. ' ' .. id .. ' ' .. heir)
      else
        claimKeys[#claimKeys + 1] = heir
      end
    end
    redis.call('ZREM', wanted .. ':withheld', member)
  end
end
flush()
if #members == tonumber(ARGV.count) then return { members[#members], released } end
redis.call('ZREM', wanted .. ':suspensions', suspension)
return { '', released }
