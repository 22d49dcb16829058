-- The claims of a subject that somebody wants, as root and value in turn. A claim of a root that a reload has continued
-- under others moves to them, with the same start: what it had served stays served. Claims that nobody wants are left
-- out; they stay stored.
local function currentClaims(claimsKey, wantedKey)
  local current = {}
  local all = redis.call('HGETALL', claimsKey)
  for i = 1, #all, 2 do
    local root, value = all[i], all[i + 1]
    local at = string.match(value, '^(%d+):')
    if at and redis.call('HGET', wantedKey, root) == at then
      current[#current + 1] = root
      current[#current + 1] = value
    else
      local others = at and redis.call('HGET', wantedKey .. ':continued', root)
      if others then
        -- One that another claim has moved to meanwhile is not this one any more.
        if redis.call('HGET', claimsKey, root) == value then redis.call('HDEL', claimsKey, root) end
        for other in string.gmatch(others, '\n([^\n]+)') do
          -- A claim of that root from before it left and came back is none of it now.
          local known = redis.call('HGET', claimsKey, other)
          local isFree = not known or string.match(known, '^(%d+):') ~= at
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

-- Whether one of some current claims names a subject itself: none that a page or a quote shows.
local function isNamedBy(current, subject)
  for i = 1, #current, 2 do
    if string.sub(current[i], -#subject - 1) == '|' .. subject then return true end
  end
  return false
end
