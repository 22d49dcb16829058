-- Events that a new claim of a known subject gets: the latest, and those before it that its subscription missed. It missed an event
-- that was made after the wallet by which it had the subject left the config, and before a page of this one showed the subject.
-- Needs include/claims.lua, include/suspended.lua and include/entries.lua before it.

local MOST_MISSED = 32

-- Returns the start of the keys of a claim's subscription.
local function subscriptionOf(claimKey)
  return string.match(claimKey, '^[^|>]*')
end

-- Returns an entry of the log as { entry, id, claimKeys }; nil for one that was trimmed, or that does not name its event beside it.
local function namedEntry(eventsKey, entry, id)
  local row = redis.call('XRANGE', eventsKey, entry, entry)[1]
  local found = { entry = entry, id = id, claimKeys = '' }
  for i = 1, row and #row[2] or 0, 2 do
    if row[2][i] == 'id' then found.id = row[2][i + 1] end
    if row[2][i] == 'claimKeys' then found.claimKeys = row[2][i + 1] end
  end
  return row and found.id and found or nil
end

-- Returns the events of a subject, newest first, as far back as they are named; `latest` is the place and the id of the last.
local function recentEvents(eventsKey, entriesKey, latest)
  local events = { namedEntry(eventsKey, latest.entry, latest.id) }
  local members = #events > 0 and redis.call('ZREVRANGEBYLEX', entriesKey, '(' .. memberOf(latest.entry), '-', 'LIMIT', 0, MOST_MISSED - 1) or {}
  for _, member in ipairs(members) do
    local ms, count = string.match(member, '^0*(%d+)%-0*(%d+)$')
    local event = ms and namedEntry(eventsKey, ms .. '-' .. count)
    if not event then break end
    events[#events + 1] = event
  end
  return events
end

-- Returns the subscriptions that had a subject by a key that has left the config since, each with the latest start of such a key.
-- `all` are the stored claims of the subject, as key and value in turn.
local function leftOf(all, wantedKey)
  local left = {}
  for i = 1, #all, 2 do
    local at, before = string.match(all[i + 1], '^(%d+):(.*):1$')
    if at and (redis.call('HGET', wantedKey, all[i]) ~= at or suspensionOf(wantedKey, all[i])) then
      local name = subscriptionOf(all[i])
      left[name] = math.max(left[name] or -math.huge, tonumber(before) or -math.huge)
    end
  end
  return left
end

-- True when what was news for such a key is news for a claim of its subscription.
local function hasLeft(left, claim)
  local latest = left[subscriptionOf(claim.key)]
  return latest ~= nil and (claim.before == '' or tonumber(claim.before) <= latest)
end

-- Returns how many of the newest events the subscription of a claim missed, none from before it began to name the claim's wallet.
local function missedOf(events, claim, wantedKey)
  local own = string.sub(cjson.encode(subscriptionOf(claim.key)), 1, -2)
  local begun = redis.call('HGET', wantedKey .. ':begun', claim.key)
  for index, event in ipairs(events) do
    local isNamed = string.find(event.claimKeys, own .. '|', 1, true) or string.find(event.claimKeys, own .. '>', 1, true)
    local isBefore = tonumber(string.match(event.entry, '^%d+')) < tonumber(claim.at)
    if isNamed or isBefore or (begun and memberOf(event.entry) <= memberOf(begun)) then return index - 1 end
  end
  return #events
end
