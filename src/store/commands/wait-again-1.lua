--[[
  Makes events of the log that no longer lead to some receiver wait again, for those of their keys that were suspended before
  the match.

  KEYS
    wanted  hash  subscription key -> time from which it is named (ms); more keys begin with it (include/suspended.lua)

  ARGV
    waiting  ...(entry text, event text, claimKey text)

  returns number
    Number of events that do not wait: their keys are in the config, or nowhere, and their match is out of date.
]]
-- @include claims
-- @include suspended
local wanted, current = KEYS.wanted, 0

-- True when a key was removed from the config, or is moving now. A complete suspension has released those that came back.
local function waits(claimKey)
  local suspension = suspensionOf(wanted, claimKey)
  if not suspension then return false end
  return string.sub(suspension, 1, 4) == 'out:' or redis.call('ZSCORE', wanted .. ':suspensions', suspension) == '0'
end

for i = 1, #ARGV.waiting do
  local claimKey, isOut = ARGV.waiting[i].claimKey, false
  local function put(other)
    if not waits(other) then return end
    -- It waited before: later events are behind it.
    await(wanted, ARGV.waiting[i].entry, ARGV.waiting[i].event, other, 0)
    isOut = true
  end
  -- A whole key that is out leads to its receivers by its stored definition.
  if string.find(claimKey, '^[^|]*>') then put(claimKey) end
  for other in string.gmatch(redis.call('HGET', wanted .. ':continued', claimKey) or '', '\n([^\n]+)') do put(other) end
  if not isOut then current = current + 1 end
end
return current
