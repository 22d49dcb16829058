-- Whether somebody still wants a subject, and whether a config names it (and not only a page shows it). Wants
-- include/claims.lua before it.
local function wantedBy(subject, claimsKey, wantedKey)
  local named = false
  local current = currentClaims(claimsKey, wantedKey)
  for i = 1, #current, 2 do named = named or string.sub(current[i], -#subject - 1) == '|' .. subject end
  return #current > 0, named
end

-- Ends the tracking of a subject. What a config names keeps its snapshot, or the next start would see it for the first
-- time again; the rest is kept for `keepMs`. Wants include/open-transfers.lua before it.
local function finish(plan, subject, keys, named, keepMs)
  forget(plan, subject)
  local counted = redis.call('HGET', keys.subject, 'counted')
  if counted then
    if redis.call('HINCRBY', keys.counts, counted, -1) <= 0 then redis.call('HDEL', keys.counts, counted) end
    redis.call('HDEL', keys.subject, 'counted')
  end
  leaveOpen(keys.subject, keys.counts, subject)
  if not named then
    redis.call('PEXPIRE', keys.subject, keepMs)
    redis.call('PEXPIRE', keys.claims, keepMs)
  end
end
