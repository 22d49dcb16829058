--[[
  Trims the oldest entries of the event log, a bounded number of them, and removes the facts of their deliveries. It stops before
  an event with an open delivery: that first ends, or is dropped and named.

  KEYS
    events   stream  the event log
    trimmed  string  newest entry that was trimmed

  ARGV
    prefix     text  prefix of all keys
    receivers  json  names of receivers
    entries    ...(entry text, event text, subject text)  the oldest of the log; the ids of event and subject, "" for none

  returns number
    Number of trimmed entries.
]]
local prefix, receivers = ARGV.prefix, cjson.decode(ARGV.receivers)

-- True for an open delivery of an event that leaves the log. Dead letters have a retention of their own.
local function isOpen(receiver, id)
  local outcome = redis.call('HGET', prefix .. ':delivery:' .. receiver .. ':' .. id, 'outcome')
  -- A key of another type holds nothing open.
  return outcome == 'pending' and type(redis.pcall('ZSCORE', prefix .. ':pending:' .. receiver, id)) == 'string'
end

local function removeDelivery(receiver, id, subject, replay)
  local key = prefix .. ':delivery:' .. receiver .. ':' .. id
  if redis.call('HGET', key, 'outcome') ~= 'dead' or not redis.call('ZSCORE', prefix .. ':dead:' .. receiver, id) then
    redis.call('DEL', key)
  end
  redis.call('HDEL', prefix .. ':delivery:' .. receiver .. ':', id)
  local last = prefix .. ':last:' .. receiver .. ':' .. replay .. ':' .. subject
  if redis.call('GET', last) == id then redis.call('DEL', last) end
end

-- Returns the deliveries of an event, as { receiver, id, replay }.
local function deliveriesOf(event)
  local all = {}
  for _, receiver in ipairs(receivers) do all[#all + 1] = { receiver, event, '' } end
  for _, member in ipairs(redis.call('ZRANGE', prefix .. ':replays-of:' .. event, 0, -1)) do
    local receiver, replay = string.match(member, '^(%S+) (%S+)$')
    if receiver then all[#all + 1] = { receiver, event .. '~' .. replay, replay } end
  end
  return all
end

-- Another process may have trimmed some of them meanwhile.
local oldest = redis.call('XRANGE', KEYS.events, '-', '+', 'COUNT', 1)[1]
if not oldest then return 0 end
local isGone, last, count = true, nil, 0
for index = 1, #ARGV.entries do
  local entry, id, subject = ARGV.entries[index].entry, ARGV.entries[index].event, ARGV.entries[index].subject
  isGone = isGone and entry ~= oldest[1]
  if not isGone then
    local deliveries = id == '' and {} or deliveriesOf(id)
    local isHeld = false
    for _, one in ipairs(deliveries) do isHeld = isHeld or isOpen(one[1], one[2]) end
    if isHeld then break end
    for _, one in ipairs(deliveries) do removeDelivery(one[1], one[2], subject, one[3]) end
    if id ~= '' then redis.call('DEL', prefix .. ':replays-of:' .. id) end
    last, count = entry, count + 1
  end
end
if not last then return 0 end
-- A reader before this entry must not take the rest of the log for all of it.
redis.call('SET', KEYS.trimmed, last)
local ms, place = string.match(last, '^(%d+)-(%d+)$')
redis.call('XTRIM', KEYS.events, 'MINID', '=', ms .. '-' .. string.format('%.0f', tonumber(place) + 1))
return count
