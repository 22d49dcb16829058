--[[
  Reads a piece of the event log: no more entries than are requested, and no further ones once they have so many bytes.

  KEYS[1] event log  stream

  ARGV[1] the first place that is meant, in the form of XRANGE; with ARGV[5] that of XREVRANGE
  ARGV[2] the last one
  ARGV[3] how many entries at most, 1 or more
  ARGV[4] how many bytes, summed over names and values of fields, after which no further entry is read
  ARGV[5] 'backward': the newest first; else ''

  Returns { entries, 1 where there may be more of what is meant, else 0 }.
]]
-- So many entries are read beyond the bytes at most: entries of the size of a page's record are few.
local STEP = 4
local command = ARGV[5] == 'backward' and 'XREVRANGE' or 'XRANGE'
local from, wanted, most = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local found, bytes = {}, 0
while true do
  local count = math.min(STEP, wanted - #found)
  local rows = redis.call(command, KEYS[1], from, ARGV[2], 'COUNT', count)
  for _, row in ipairs(rows) do
    found[#found + 1] = row
    for _, text in ipairs(row[2]) do bytes = bytes + #text end
  end
  if #rows < count then return { found, 0 } end
  if #found == wanted or bytes >= most then return { found, 1 } end
  from = '(' .. found[#found][1]
end
