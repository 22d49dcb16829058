-- Returns two flags: a claim still wants the subject; the config names it, and not only a page shows it; and the current claims.
-- Needs include/claims.lua before it.
local function wantedBy(subject, claimsKey, wantedKey)
  local current = currentClaims(claimsKey, wantedKey)
  return #current > 0, isNamedBy(current, subject), current
end

-- Ends the tracking of a subject. Needs include/open-transfers.lua and include/ended.lua before it.
local function finish(plan, subject, keys, named)
  removeMember(plan, subject)
  local counted = redis.call('HGET', keys.subject, 'counted')
  if counted then
    if redis.call('HINCRBY', keys.counts, counted, -1) <= 0 then redis.call('HDEL', keys.counts, counted) end
    redis.call('HDEL', keys.subject, 'counted')
  end
  leaveOpen(keys.subject, keys.counts, subject)
  if not named then noteEnded(keys.subject, subject) end
end
