--[[
  Has events of the log that lead to some receiver no more wait again, for the roots of theirs that were suspended before they were
  matched.

  KEYS
    wanted  hash  root -> since when a subscription names it (ms); more keys begin with it (include/suspended.lua)

  ARGV
    waiting  ...(entry text, event text, root text)

  returns number
    How many lead on, as far as this knows: what they were matched by is not current any more.
]]
-- @include claims
-- @include suspended
local wanted, current = KEYS.wanted, 0

-- Whether a root has left the config, or moves just now. What a made suspension has back is not: it was released by that one.
local function waits(root)
  local suspension = suspensionOf(wanted, root)
  if not suspension then return false end
  return string.sub(suspension, 1, 4) == 'out:' or redis.call('ZSCORE', wanted .. ':suspensions', suspension) == '0'
end

for i = 1, #ARGV.waiting do
  local root, isOut = ARGV.waiting[i].root, false
  local function put(other)
    if not waits(other) then return end
    -- It waited before: what came meanwhile is behind it.
    await(wanted, ARGV.waiting[i].entry, ARGV.waiting[i].event, other, 0)
    isOut = true
  end
  put(root)
  for other in string.gmatch(redis.call('HGET', wanted .. ':continued', root) or '', '\n([^\n]+)') do put(other) end
  if not isOut then current = current + 1 end
end
return current
