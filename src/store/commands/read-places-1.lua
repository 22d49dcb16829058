--[[
  Reads what stands at some places of the event log, in their order: no further place once what was read has so many bytes,
  and at least one.

  KEYS[1] event log  stream

  ARGV[1] how many bytes, summed over names and values of fields
  ARGV[2..] the places

  Returns for each place that was read the fields of its entry, or an empty list where it has left the log.
]]
local most, bytes, found = tonumber(ARGV[1]), 0, {}
for index = 2, #ARGV do
  local row = redis.call('XRANGE', KEYS[1], ARGV[index], ARGV[index])[1]
  local fields = row and row[2] or {}
  for _, text in ipairs(fields) do bytes = bytes + #text end
  found[#found + 1] = fields
  if bytes >= most then break end
end
return found
