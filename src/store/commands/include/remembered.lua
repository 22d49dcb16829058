--[[
  What the relay remembers of its last round. It opens deliveries by that without another read, where the script that opens them
  finds that nothing has changed. Needs pace before it.

    from         entry at which the receiver's cursor is
    most         number of its open deliveries beyond which it does not advance
    definitions  { key, field, SHA-1 of the text } of the receivers, and of the subscriptions that the events' claims lead to
    continued    key of the subscription keys that continue removed ones
    claimKeys    subscription keys of the events
    passed       other receivers with the same cursor, which no event is for
    counted      key of the entry up to which events without a receiver are counted, "" for none: it is `from` as well
    events       key of the event log
    log          the entries that follow `from` there; {} where they were read from it
    expected     { name, event, claimKeys } of the events whose entries follow `from` there, as their commits store them, where
                 these are not answered yet; `name` is written in place of the entry's id
]]
local function isAsExpected(fields, one)
  if #fields ~= 8 or fields[4] ~= 'event' or fields[6] ~= one.event then return false end
  local claimKeys = cjson.decode(fields[8])
  if #claimKeys ~= #one.claimKeys then return false end
  for index, claimKey in ipairs(one.claimKeys) do
    if claimKeys[index] ~= claimKey then return false end
  end
  return true
end

-- Returns the ids of the expected entries by their names, and in order; nil where the log has others.
local function expectedIds(remembered)
  local ids, list = {}, {}
  if #remembered.expected == 0 then return ids, list end
  local from, count = remembered.from, #remembered.expected
  local found = redis.call('XRANGE', remembered.events, '(' .. from, '+', 'COUNT', count)
  for index, one in ipairs(remembered.expected) do
    if not found[index] or not isAsExpected(found[index][2], one) then return nil end
    ids[one.name], list[index] = found[index][1], found[index][1]
  end
  return ids, list
end

local function isRemembered(remembered, keys, receiver)
  local from = remembered.from
  if redis.call('HGET', keys.cursors, receiver) ~= from then return false end
  if #remembered.log > 0 then
    local found = redis.call('XRANGE', remembered.events, '(' .. from, '+', 'COUNT', #remembered.log)
    for index, entry in ipairs(remembered.log) do
      if not found[index] or found[index][1] ~= entry then return false end
    end
  end
  if isHeld(stateOf(keys.receiver)) or redis.call('ZCARD', keys.pending) > remembered.most then return false end
  for _, one in ipairs(remembered.definitions) do
    local text = redis.call('HGET', one[1], one[2])
    if not text or redis.sha1hex(text) ~= one[3] then return false end
  end
  for _, claimKey in ipairs(remembered.claimKeys) do
    if redis.call('HEXISTS', remembered.continued, claimKey) == 1 then return false end
  end
  for _, name in ipairs(remembered.passed) do
    if redis.call('HGET', keys.cursors, name) ~= from then return false end
  end
  return remembered.counted == '' or redis.call('GET', remembered.counted) == from
end
