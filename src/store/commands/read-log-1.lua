--[[
  Reads a part of the event log, limited in entries and bytes.

  KEYS
    events  stream

  ARGV
    from       text             first place, in the form of XRANGE; backward that of XREVRANGE
    to         text             last place
    most       number           limit of entries, 1 or more
    mostBytes  number           bytes of names and unpacked values of fields after which no further entry is read
    order      "backward" | ""  "backward": newest first

  returns
    rows  list of [id text, fields list of text]
    more  flag  true when there may be more entries in the range
]]
-- @include packed
-- So many entries are read beyond the bytes at most: entries of the size of a page's record are few.
local STEP = 4
local command = ARGV.order == 'backward' and 'XREVRANGE' or 'XRANGE'
local from, wanted, most = ARGV.from, tonumber(ARGV.most), tonumber(ARGV.mostBytes)
local found, bytes = {}, 0
while true do
  local count = math.min(STEP, wanted - #found)
  local rows = redis.call(command, KEYS.events, from, ARGV.to, 'COUNT', count)
  for _, row in ipairs(rows) do
    found[#found + 1] = row
    for _, text in ipairs(row[2]) do bytes = bytes + bytesOf(text) end
  end
  if #rows < count then return { found, 0 } end
  if #found == wanted or bytes >= most then return { found, 1 } end
  from = '(' .. found[#found][1]
end
