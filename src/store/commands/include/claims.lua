-- Returns the values of a hash for the keys of a list of keys and values in turn.
local function valuesOf(hashKey, list)
  local values = {}
  for from = 1, #list, 2000 do
    local keys = {}
    for i = from, math.min(from + 1999, #list), 2 do keys[#keys + 1] = list[i] end
    local found = redis.call('HMGET', hashKey, unpack(keys))
    for index, key in ipairs(keys) do values[key] = found[index] end
  end
  return values
end

-- Returns the wanted claims of a subject, as key and value in turn. A claim of a key that a reload has continued under others
-- moves to them, with the same start: a served claim stays served. Unwanted claims are omitted; they stay stored. `all` are the
-- stored claims where the script has read them, as key and value in turn.
local function currentClaims(claimsKey, wantedKey, all)
  local current = {}
  all = all or redis.call('HGETALL', claimsKey)
  local wanted = valuesOf(wantedKey, all)
  for i = 1, #all, 2 do
    local key, value = all[i], all[i + 1]
    local at = string.match(value, '^(%d+):')
    if at and wanted[key] == at then
      current[#current + 1] = key
      current[#current + 1] = value
    else
      local others = at and redis.call('HGET', wantedKey .. ':continued', key)
      if others then
        -- A key that another claim has moved to meanwhile no longer has this claim.
        if redis.call('HGET', claimsKey, key) == value then redis.call('HDEL', claimsKey, key) end
        for other in string.gmatch(others, '\n([^\n]+)') do
          -- A claim from before the removal and return of that key does not count.
          local stored = redis.call('HGET', claimsKey, other)
          local isFree = not stored or string.match(stored, '^(%d+):') ~= at
          if isFree and redis.call('HGET', wantedKey, other) == at then
            redis.call('HSET', claimsKey, other, value)
            current[#current + 1] = other
            current[#current + 1] = value
          end
        end
      end
    end
  end
  return current
end

-- True when one of the current claims names a subject itself, and not by a page or a quote.
local function isNamedBy(current, subject)
  for i = 1, #current, 2 do
    if string.sub(current[i], -#subject - 1) == '|' .. subject then return true end
  end
  return false
end
