--[[
  Short forms of ids, for members and values that only scripts read: bytes in place of lower-case hexadecimal digits. A mark is
  before them:

  | mark | in place of                        | mark | in place of          |
  |------|------------------------------------|------|----------------------|
  | \1   | 0x and 40 digits                   | \5   | wallet:0x, 40 digits |
  | \2   | 0x and 64 digits                   | \6   | intent:0x, 64 digits |
  | \3   | evt_ and 40 digits                 | \7   | 6 digits             |
  | \4   | nothing: the next byte is no mark  | \8   | a space and 6 digits |
]]
local SHORT_MARKS = { ['40'] = '\1', ['64'] = '\2', ['wallet:40'] = '\5', ['intent:64'] = '\6' }
local SHORT_HEADS = { '0x', '0x', 'evt_', '', 'wallet:0x', 'intent:0x', '', ' ' }
local SHORT_BYTES = { 20, 32, 20, 1, 20, 32, 3, 3 }

-- A few digits at a time: a call for each byte would take a third of a commit.
local function bytesOfDigits(digits)
  if #digits == 6 then return struct.pack('>I3', tonumber(digits, 16)) end
  return (string.gsub(digits, '%x%x%x%x%x%x%x%x', function(some) return struct.pack('>I4', tonumber(some, 16)) end))
end

local function shorten(text)
  local short = string.gsub(text, '[\1-\8]', '\4%0')
  if #short == 44 and string.find(short, '^evt_[0-9a-f]+$') then return '\3' .. bytesOfDigits(string.sub(short, 5)) end
  -- A pattern that begins with a run of any length would try each end of it from each of its characters.
  local pieces, from = {}, 1
  for at, digits, behind in string.gmatch(short, '()0x(%x+)()') do
    local alone = SHORT_MARKS[tostring(#digits)]
    if alone and not string.find(digits, '%u') then
      local word = string.sub(short, math.max(from, at - 7), at - 1)
      local whole = SHORT_MARKS[word .. #digits]
      pieces[#pieces + 1] = string.sub(short, from, at - 1 - (whole and #word or 0)) .. (whole or alone) .. bytesOfDigits(digits)
      from = behind
    end
  end
  return table.concat(pieces) .. string.sub(short, from)
end

local function expand(short)
  local pieces, at = {}, 1
  local from = string.find(short, '[\1-\8]')
  while from do
    local mark = string.byte(short, from)
    local behind = from + 1 + SHORT_BYTES[mark]
    local bytes = string.sub(short, from + 1, behind - 1)
    if mark ~= 4 then bytes = string.format(string.rep('%02x', #bytes), string.byte(bytes, 1, -1)) end
    pieces[#pieces + 1] = string.sub(short, at, from - 1) .. SHORT_HEADS[mark] .. bytes
    at = behind
    from = string.find(short, '[\1-\8]', at)
  end
  return table.concat(pieces) .. string.sub(short, at)
end

-- Returns the short form of six digits each, with spaces between them; that of any other text where it is none.
local function shortenMarks(text)
  local short = string.gsub(text, ' (%x%x%x%x%x%x)', function(digits) return '\8' .. bytesOfDigits(digits) end)
  short = string.gsub(short, '^(%x%x%x%x%x%x)', function(digits) return '\7' .. bytesOfDigits(digits) end)
  return expand(short) == text and short or shorten(text)
end
