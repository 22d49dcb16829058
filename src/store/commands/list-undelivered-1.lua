--[[
  Lists deliveries that were attempted and not accepted, or given up, in the order of their list, from behind a place in it
  on. The place may be gone from the list meanwhile.

  KEYS
    list  zset  delivery -> time at which it was opened, or died, ms

  ARGV
    deliveryPrefix  text    prefix of the receiver's delivery keys
    score           text    score of the place, "" for the beginning
    id              text    delivery of the place
    most            number  limit of listed deliveries
    mostChecked     number  limit of checked deliveries

  returns
    more     "more" | "end"            "more" when others come behind these
    checked  number
    score    text                      score and delivery that were read last; "" for nothing
    id       text
    listed   ...(id text, score text)
]]
-- Redis orders by bytes; Lua's own order is that of the server's language.
local function isBehind(id, other)
  for i = 1, math.min(#id, #other) do
    local one, two = string.byte(id, i), string.byte(other, i)
    if one ~= two then return one > two end
  end
  return #id > #other
end

local function rankBehind(score, place)
  if score == '' then return 0 end
  local low = redis.call('ZCOUNT', KEYS.list, '-inf', '(' .. score)
  local high = low + redis.call('ZCOUNT', KEYS.list, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if isBehind(redis.call('ZRANGE', KEYS.list, middle, middle)[1], place) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local most, mostChecked = tonumber(ARGV.most), tonumber(ARGV.mostChecked)
local first = rankBehind(ARGV.score, ARGV.id)
local all = redis.call('ZRANGE', KEYS.list, first, first + mostChecked, 'WITHSCORES')
local listed, score, id = {}, ARGV.score, ARGV.id
local last = math.min(#all / 2, mostChecked)
local index = 0
while index < last and #listed < 2 * most do
  index = index + 1
  id, score = all[2 * index - 1], all[2 * index]
  local fact = redis.call('HMGET', ARGV.deliveryPrefix .. id, 'outcome', 'tries')
  if fact[1] ~= 'pending' or fact[2] then
    listed[#listed + 1] = id
    listed[#listed + 1] = score
  end
end
return { index < #all / 2 and 'more' or 'end', tostring(index), score, id, unpack(listed) }
