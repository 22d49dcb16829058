--[[
  Reads what stands at some places of the event log, in their order: no further place once what was read has so many bytes,
  and at least one.

  KEYS
    events  stream

  ARGV
    mostBytes  number   how many bytes, summed over names and values of fields
    entries    ...text  the places

  returns list of list of text
    For each place that was read the fields of its entry, or an empty list where it has left the log.
]]
local most, bytes, found = tonumber(ARGV.mostBytes), 0, {}
for index = 1, #ARGV.entries do
  local row = redis.call('XRANGE', KEYS.events, ARGV.entries[index], ARGV.entries[index])[1]
  local fields = row and row[2] or {}
  for _, text in ipairs(fields) do bytes = bytes + #text end
  found[#found + 1] = fields
  if bytes >= most then break end
end
return found
