--[[
  Delivered deliveries of a receiver. They are in one hash, under the prefix of the receiver's delivery keys: a key of its own
  for each would take three times as many bytes.

  <prefix>  hash  id -> "<entry>|<tries>|<ms from the entry to the delivery>|<more>", as store/delivery-fact.ts reads it

  `more` is JSON, or "" where there is nothing: the failed `attempts`, `suspended`, and the `claimKeys` where they are others than
  those of the entry.
]]
-- Returns the entry of a delivered delivery; nil where it was not delivered.
local function deliveredEntry(prefix, id)
  local text = redis.call('HGET', prefix, id)
  return text and (string.match(text, '^(%d+%-%d+)|') or '')
end

local function outcomeOf(prefix, id)
  return redis.call('HGET', prefix .. id, 'outcome') or (deliveredEntry(prefix, id) and 'delivered')
end

-- True when subscription keys are those of an entry, which writes them without the subject of its event.
local function areLogged(claimKeys, events, entry)
  local isPlace = string.match(entry or '', '^%d+%-%d+$')
  local row = isPlace and claimKeys and redis.call('XRANGE', events, entry, entry)[1]
  local logged
  for i = 1, row and #row[2] or 0, 2 do
    if row[2][i] == 'claimKeys' then logged = row[2][i + 1] end
  end
  if not logged then return false end
  if logged == claimKeys then return true end
  local isRead, list = pcall(cjson.decode, claimKeys)
  local isLoggedRead, loggedList = pcall(cjson.decode, logged)
  if not isRead or not isLoggedRead or type(list) ~= 'table' or #list ~= #loggedList then return false end
  for index, claimKey in ipairs(list) do
    local short = loggedList[index]
    -- No event is about a wallet.
    local isSame = claimKey == short
      or (string.sub(short, -1) == '|' and string.sub(claimKey, 1, #short) == short
        and string.sub(claimKey, #short + 1, #short + 7) ~= 'wallet:')
    if not isSame then return false end
  end
  return true
end

-- Replaces the fact of an open delivery by its delivered form. `delivered` is { events, atMs, tries, attempts (nil), isLogged (its
-- subscription keys are those of the entry, as its process has found; else they are compared) }.
local function setDelivered(prefix, id, fact, delivered)
  local atMs, more = string.match(fact.entry or '', '^(%d+)%-%d+$'), {}
  local function note(field, value)
    if value then more[#more + 1] = cjson.encode(field) .. ':' .. cjson.encode(value) end
  end
  local isLogged = delivered.isLogged or areLogged(fact.claimKeys, delivered.events, fact.entry)
  if not isLogged then note('claimKeys', fact.claimKeys) end
  note('suspended', fact.suspended)
  note('attempts', delivered.attempts)
  local afterMs = string.format('%.0f', delivered.atMs - tonumber(atMs or '0'))
  local text = (atMs and fact.entry or '0-0') .. '|' .. delivered.tries .. '|' .. afterMs .. '|'
  if #more > 0 then text = text .. '{' .. table.concat(more, ',') .. '}' end
  redis.call('HSET', prefix, id, text)
  redis.call('DEL', prefix .. id)
end
