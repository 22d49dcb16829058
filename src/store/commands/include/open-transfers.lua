--[[
  The transfers that are tracked and have not come to an end, with what they have sent. Beside the counts (`counts`):

  `:open`          hash  "<state>|<route>|<token>" -> number of transfers; with "|high" and "|low" behind it the base units
                         that they sent, in multiples of 10^12 and the rest
  `:open:<state>`  zset  subject -> since when it is in that state, seconds

  The snapshot's `open` says as what it is counted, "<state>|<route>|<token>|<high>|<low>", so that just this is taken
  back. Amounts are split, for no number of Redis holds the sums of tokens with 18 decimals.
]]
-- Beyond so many fields, what is new is counted by its state alone.
local MOST_OPEN_FIELDS = 3000

-- Adds to a sum. Who can make it overflow makes it wrong, and nothing else fails by it.
local function addOpen(key, field, change)
  if change ~= '' and change ~= '0' and change ~= '-' and change ~= '-0' then redis.pcall('HINCRBY', key, field, change) end
end

local function leaveOpen(subjectKey, countsKey, subject)
  local noted = redis.call('HGET', subjectKey, 'open')
  if not noted then return end
  local sums = countsKey .. ':open'
  redis.call('HDEL', subjectKey, 'open')
  local name, state, high, low = string.match(noted, '^((%l+)|[^|]*|[^|]*)|(%d*)|(%d*)$')
  if not name then return end
  redis.call('ZREM', sums .. ':' .. state, subject)
  local left = redis.pcall('HINCRBY', sums, name, -1)
  if type(left) == 'number' and left > 0 then
    addOpen(sums, name .. '|high', '-' .. high)
    addOpen(sums, name .. '|low', '-' .. low)
  else
    redis.call('HDEL', sums, name, name .. '|high', name .. '|low')
  end
end

-- `open` is "<state>|<route>|<token>|<high>|<low>|<since>"; "" for a subject that is no open transfer.
local function noteOpen(subjectKey, countsKey, subject, open)
  local noted, name, state, high, low, since = string.match(open, '^(((%l+)|[^|]*|[^|]*)|(%d*)|(%d*))|(%d+)$')
  if not noted then return leaveOpen(subjectKey, countsKey, subject) end
  local sums = countsKey .. ':open'
  if redis.call('HGET', subjectKey, 'open') ~= noted then
    leaveOpen(subjectKey, countsKey, subject)
    if redis.call('HEXISTS', sums, name) == 0 and redis.call('HLEN', sums) >= MOST_OPEN_FIELDS then
      name, high, low = state .. '|*|', '', ''
      noted = name .. '||'
    end
    redis.pcall('HINCRBY', sums, name, 1)
    addOpen(sums, name .. '|high', high)
    addOpen(sums, name .. '|low', low)
    redis.call('HSET', subjectKey, 'open', noted)
  end
  redis.call('ZADD', sums .. ':' .. state, since, subject)
end
