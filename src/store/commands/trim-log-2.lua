--[[
  Trims the oldest entries of the event log, a bounded number of them, and removes the facts of their deliveries. It stops before
  an event with an open delivery: that first ends, or is dropped and named.

  KEYS
    events   stream  the event log
    trimmed  string  newest entry that was trimmed

  ARGV
    beforeMs   number   ms; entries before it are trimmed
    most       number   limit of trimmed entries
    prefix     text     prefix of all keys
    receivers  ...text  names of receivers

  returns
    count  number  number of trimmed entries
    more   flag    true when there may be more
]]
local before, most, prefix = ARGV.beforeMs, tonumber(ARGV.most), ARGV.prefix

-- True for an open delivery of an event that leaves the log. Dead letters have a retention of their own.
local function isOpen(receiver, id)
  local outcome = redis.call('HGET', prefix .. ':delivery:' .. receiver .. ':' .. id, 'outcome')
  return outcome == 'pending' and redis.call('ZSCORE', prefix .. ':pending:' .. receiver, id)
end

local function removeDelivery(receiver, id, subject, replay)
  local key = prefix .. ':delivery:' .. receiver .. ':' .. id
  if redis.call('HGET', key, 'outcome') ~= 'dead' or not redis.call('ZSCORE', prefix .. ':dead:' .. receiver, id) then
    redis.call('DEL', key)
  end
  local last = prefix .. ':last:' .. receiver .. ':' .. replay .. ':' .. subject
  if redis.call('GET', last) == id then redis.call('DEL', last) end
end

-- Returns the deliveries of an event, as { receiver, id, replay }.
local function deliveriesOf(event)
  local all = {}
  for index = 1, #ARGV.receivers do all[#all + 1] = { ARGV.receivers[index], event, '' } end
  for _, member in ipairs(redis.call('ZRANGE', prefix .. ':replays-of:' .. event, 0, -1)) do
    local receiver, replay = string.match(member, '^(%S+) (%S+)$')
    if receiver then all[#all + 1] = { receiver, event .. '~' .. replay, replay } end
  end
  return all
end

local rows = redis.call('XRANGE', KEYS.events, '-', '(' .. before .. '-0', 'COUNT', most)
local last, count = nil, 0
for _, row in ipairs(rows) do
  local kind, event
  for i = 1, #row[2], 2 do
    if row[2][i] == 'kind' then kind = row[2][i + 1] end
    if row[2][i] == 'event' then event = row[2][i + 1] end
  end
  local id = kind ~= 'subscribers' and event and string.match(event, '^{"id":"([^"]+)"')
  if id then
    local subject = string.match(event, '"subject":{"kind":"[^"]*","id":"([^"]*)"') or ''
    local deliveries = deliveriesOf(id)
    local isHeld = false
    for _, one in ipairs(deliveries) do isHeld = isHeld or isOpen(one[1], one[2]) end
    if isHeld then break end
    for _, one in ipairs(deliveries) do removeDelivery(one[1], one[2], subject, one[3]) end
    redis.call('DEL', prefix .. ':replays-of:' .. id)
  end
  last, count = row[1], count + 1
end
if not last then return { 0, 0 } end
-- A reader before this entry must not take the rest of the log for all of it.
redis.call('SET', KEYS.trimmed, last)
local ms, place = string.match(last, '^(%d+)-(%d+)$')
redis.call('XTRIM', KEYS.events, 'MINID', '=', ms .. '-' .. string.format('%.0f', tonumber(place) + 1))
return { count, count == most and 1 or 0 }
