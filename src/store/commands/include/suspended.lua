-- What is suspended (see store/suspensions.ts), and the events that wait for it. Wants include/claims.lua before it.
--   <wanted>:suspended    hash    root -> its suspension, "out:<ms>" or "back:<ms>"
--   <wanted>:suspensions  zset    suspension -> since when, ms; 0 while a sync makes it
--   <wanted>:withheld     zset    "<number> <entry> <event id> <root>" -> 0: what waits, in the order in which it came
--   <wanted>:waited       string  the newest number

-- The suspension of a root; nil for one that is in the config. One whose suspension is gone is.
local function suspensionOf(wantedKey, root)
  local suspension = redis.call('HGET', wantedKey .. ':suspended', root)
  return suspension and redis.call('ZSCORE', wantedKey .. ':suspensions', suspension) and suspension or nil
end

-- Has an event wait for a root, behind all that waits; `number` 0 before it, among others in the order of the log, and once.
local function await(wantedKey, entry, event, root, number)
  number = number or redis.call('INCR', wantedKey .. ':waited')
  redis.call('ZADD', wantedKey .. ':withheld', 0, string.format('%016.0f %s %s %s', number, entry, event, root))
end

-- Parts roots in those that are reported now and those for which an event has to wait.
local function partRoots(wantedKey, roots)
  if #roots == 0 or redis.call('EXISTS', wantedKey .. ':suspensions') == 0 then return roots, {} end
  local reported, withheld = {}, {}
  for _, root in ipairs(roots) do
    local some = suspensionOf(wantedKey, root) and withheld or reported
    some[#some + 1] = root
  end
  return reported, withheld
end

-- Whether all who want a subject have left the config: it is polled with spare budget then.
local function isOut(claimsKey, wantedKey)
  if redis.call('EXISTS', wantedKey .. ':suspensions') == 0 then return false end
  local current = currentClaims(claimsKey, wantedKey)
  for i = 1, #current, 2 do
    local suspension = suspensionOf(wantedKey, current[i])
    if not suspension or string.sub(suspension, 1, 4) ~= 'out:' then return false end
  end
  return #current > 0
end
