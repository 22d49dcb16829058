--[[
  Tracked transfers that have not ended, with their sent amounts. Beside the counts (`counts`):

  `:open`          hash  "<state>|<route>|<token>" -> number of transfers; with "|0", "|1", … behind it the base units that they
                         sent, in ones, in 10^12, in 10^24, …
  `:open:<state>`  zset  short subject -> time from which it is in that state, seconds

  Needs include/shorten.lua before it. The snapshot's `open` stores the short form of its count, "<state>|<route>|<token>|<ones>,<10^12>,…", so that exactly this is subtracted. What is
  beyond its first 64 bytes is in `open1`: one value that is longer would make the hash four times as large.
  Amounts are split: no number of Redis holds a uint256, and Lua's are exact to 2^53 only. The parts stay text here, and
  HINCRBY adds them as 64-bit integers, which nine million transfers cannot overflow.
]]
-- Beyond this number of fields, a new transfer is counted by its state alone.
local MOST_OPEN_FIELDS = 3000
-- Number of parts of the largest uint256.
local AMOUNT_FIELDS = 7

local function addOpen(sums, name, parts, sign)
  local index = 0
  for part in string.gmatch(parts, '%d+') do
    if part ~= '0' then redis.pcall('HINCRBY', sums, name .. '|' .. index, sign .. part) end
    index = index + 1
  end
end

local function dropOpen(sums, name)
  redis.call('HDEL', sums, name)
  for index = 0, AMOUNT_FIELDS - 1 do redis.call('HDEL', sums, name .. '|' .. index) end
end

-- Returns the short form of the count of a transfer; nil for none.
local function readNoted(subjectKey)
  local pieces = redis.call('HMGET', subjectKey, 'open', 'open1')
  return pieces[1] and pieces[1] .. (pieces[2] or '')
end

local function leaveOpen(subjectKey, countsKey, subject)
  local noted = readNoted(subjectKey)
  if not noted then return end
  local sums = countsKey .. ':open'
  redis.call('HDEL', subjectKey, 'open', 'open1')
  local name, state, parts = string.match(expand(noted), '^((%l+)|[^|]*|[^|]*)|([%d,]*)$')
  if not name then return end
  redis.call('ZREM', sums .. ':' .. state, shorten(subject))
  local left = redis.pcall('HINCRBY', sums, name, -1)
  if type(left) == 'number' and left > 0 then addOpen(sums, name, parts, '-') else dropOpen(sums, name) end
end

-- `open` is "<state>|<route>|<token>|<ones>,<10^12>,…|<since>"; "" for a subject that is no open transfer.
local function noteOpen(subjectKey, countsKey, subject, open)
  local noted, name, state, parts, since = string.match(open, '^(((%l+)|[^|]*|[^|]*)|([%d,]*))|(%d+)$')
  if not noted then return leaveOpen(subjectKey, countsKey, subject) end
  local sums = countsKey .. ':open'
  local short = shorten(noted)
  if readNoted(subjectKey) ~= short then
    leaveOpen(subjectKey, countsKey, subject)
    if redis.call('HEXISTS', sums, name) == 0 and redis.call('HLEN', sums) >= MOST_OPEN_FIELDS then
      name, parts = state .. '|*|', ''
      short = name .. '|'
    end
    redis.pcall('HINCRBY', sums, name, 1)
    addOpen(sums, name, parts, '')
    redis.call('HSET', subjectKey, 'open', string.sub(short, 1, 64))
    if #short > 64 then redis.call('HSET', subjectKey, 'open1', string.sub(short, 65)) end
  end
  redis.call('ZADD', sums .. ':' .. state, since, shorten(subject))
end
