--[[
  Reads the entries at some places of the event log, in their order, limited in bytes: at least one place.

  KEYS
    events  stream

  ARGV
    mostBytes  number   bytes of names and unpacked values of fields after which no further place is read
    entries    ...text  places

  returns list of list of text
    The fields of the entry at each place that was read; an empty list where it has expired from the log.
]]
-- @include packed
local most, bytes, found = tonumber(ARGV.mostBytes), 0, {}
for index = 1, #ARGV.entries do
  local row = redis.call('XRANGE', KEYS.events, ARGV.entries[index], ARGV.entries[index])[1]
  local fields = row and row[2] or {}
  for _, text in ipairs(fields) do bytes = bytes + bytesOf(text) end
  found[#found + 1] = fields
  if bytes >= most then break end
end
return found
