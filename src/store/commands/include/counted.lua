-- Counts a tracked subject under "<kind>|<status>", and no more under what it was counted as before.
local function noteCounted(subjectKey, countsKey, counted)
  local before = redis.call('HGET', subjectKey, 'counted')
  if before == counted then return end
  if before and redis.call('HINCRBY', countsKey, before, -1) <= 0 then redis.call('HDEL', countsKey, before) end
  redis.call('HINCRBY', countsKey, counted, 1)
  redis.call('HSET', subjectKey, 'counted', counted)
end
