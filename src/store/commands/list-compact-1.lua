--[[
  Lists compact subjects whose time in their state has passed, from a part of all (include/compact.lua).

  KEYS
    compact  hash  subject -> its state and claims

  ARGV
    cursor    text    place at which the last call ended, "0" for the beginning
    count     number  number of subjects to check, about
    beforeMs  number  time before which their state began, ms

  returns
    cursor    text
    subjects  ...text
]]
-- @include ended
-- @include shorten
-- @include compact
local before, found = tonumber(ARGV.beforeMs), {}
local part = redis.call('HSCAN', KEYS.compact, ARGV.cursor, 'COUNT', ARGV.count)
for i = 1, #part[2], 2 do
  local isReadable, _, since = pcall(cmsgpack.unpack_one, part[2][i + 1])
  -- An unreadable one is due: the next move stores it anew.
  if not isReadable or type(since) ~= 'number' or since <= before then found[#found + 1] = expand(part[2][i]) end
end
return { part[1], unpack(found) }
