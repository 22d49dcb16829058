-- Suspended subscription keys (see store/suspensions.ts), and the events that wait for them. Needs include/claims.lua before it.
--   <wanted>:suspended    hash    subscription key -> its suspension, "out:<ms>" or "back:<ms>"
--   <wanted>:suspensions  zset    suspension -> its start, ms; 0 while a sync makes it
--   <wanted>:withheld     zset    "<number> <entry> <event id> <key>" -> 0: what waits, in the order in which it came
--   <wanted>:waited       string  the newest number

-- Returns the suspension of a subscription key; nil for one that is in the config, or whose suspension is gone.
local function suspensionOf(wantedKey, claimKey)
  local suspension = redis.call('HGET', wantedKey .. ':suspended', claimKey)
  return suspension and redis.call('ZSCORE', wantedKey .. ':suspensions', suspension) and suspension or nil
end

-- Makes an event wait for a key, behind all that wait; `number` 0 puts it before them, once, in the order of the log.
local function await(wantedKey, entry, event, claimKey, number)
  local place = string.format('%016.0f', number or redis.call('INCR', wantedKey .. ':waited'))
  if number then
    local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
    place = place .. string.rep('0', 16 - #ms) .. ms .. string.rep('0', 20 - #count) .. count
  end
  redis.call('ZADD', wantedKey .. ':withheld', 0, place .. ' ' .. entry .. ' ' .. event .. ' ' .. claimKey)
end

-- Splits subscription keys into those that are reported now and those for which an event has to wait.
local function splitClaimKeys(wantedKey, claimKeys)
  if #claimKeys == 0 or redis.call('EXISTS', wantedKey .. ':suspensions') == 0 then return claimKeys, {} end
  local reported, withheld = {}, {}
  for _, claimKey in ipairs(claimKeys) do
    local some = suspensionOf(wantedKey, claimKey) and withheld or reported
    some[#some + 1] = claimKey
  end
  return reported, withheld
end

-- True when all subscriptions of a subject were removed from the config: then it is polled with spare budget. `current` are its
-- current claims where the script has them.
local function isOut(claimsKey, wantedKey, current)
  if redis.call('EXISTS', wantedKey .. ':suspensions') == 0 then return false end
  current = current or currentClaims(claimsKey, wantedKey)
  for i = 1, #current, 2 do
    local suspension = suspensionOf(wantedKey, current[i])
    if not suspension or string.sub(suspension, 1, 4) ~= 'out:' then return false end
  end
  return #current > 0
end
