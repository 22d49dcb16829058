--[[
  Returns the time on the upstream's clock at which a subscription began to name a subject. Clocks that are less than 2 min apart
  count as equal; a response that is further off Redis time is believed where several agree (store/confirmed-time.ts).

  | Stored           | The start                                         | Becomes                                   |
  |------------------|---------------------------------------------------|-------------------------------------------|
  | nothing          | not known                                         | one of the others, with the first answer  |
  | <at>:<seconds>:p | counts, by a response that agrees with Redis time | settled, or corrected, once several       |
  |                  |                                                   | responses give the offset of the upstream |
  | <at>:d<ms>       | doubtful since then: the response is off, and no  | settled by the next response, where that  |
  |                  | others agree, or Redis' clock has jumped          | is not so; after an hour                  |
  | <at>:<seconds>   | settled                                           |                                           |

  KEYS
    since  hash  subscription key -> text of the table above
    clock  hash  the confirmed time

  ARGV
    key     text     subscription key
    atMs    number   start, ms of Redis time
    dateMs  number?  the upstream's clock in a response that has just come, ms; none when it reported none

  returns
    earliest  number  lower bound of its start, seconds
    latest    number  upper bound of it; the same where the start is known
    news      "" | "doubted" | "believed" | "corrected"  "believed": an upstream that is off

  The upstream reports whole seconds and the answer took a while, so that the start comes out early rather than late: a
  doubtful change is reported, and does not count as history.
]]
local TOLERANCE_MS, LONGEST_DOUBT_MS = 120000, 3600000
local stored = redis.call('HGET', KEYS.since, ARGV.key)
local storedAt, seconds, mark
if stored then storedAt, seconds, mark = string.match(stored, '^(%d+):([d%-]?%d+)(:?p?)$') end
if storedAt ~= ARGV.atMs then seconds, mark = nil, nil end
local doubtedMs = seconds and tonumber(string.match(seconds, '^d(%d+)$') or '')
if doubtedMs then seconds = nil end
if seconds and mark == '' then return { seconds, seconds, '' } end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local clock = redis.call('HMGET', KEYS.clock, 'state', 'upstreamMs', 'jumpMs', 'lastJumpMs')
local hasJumped, agreed = clock[1] == 'jumped', tonumber(clock[2] or '')
local at = tonumber(ARGV.atMs)
-- It was named while Redis' clock was ahead.
if at > nowMs then at = math.min(nowMs, at - math.max(0, tonumber(clock[4] or '') or 0)) end
local ahead = tonumber(ARGV.dateMs)
local function secondsOf(offset) return string.format('%.0f', math.floor((at + offset) / 1000)) end
local function isNear(one, other) return math.abs(one - other) <= TOLERANCE_MS end
local function put(value) redis.call('HSET', KEYS.since, ARGV.key, ARGV.atMs .. ':' .. value) end
local function settle(offset, news)
  put(secondsOf(offset))
  return { secondsOf(offset), secondsOf(offset), news }
end

local offset = ahead and ahead - nowMs
if seconds then
  if not agreed or hasJumped then return { seconds, seconds, '' } end
  local counted = tonumber(seconds) * 1000 - at
  if isNear(counted, agreed) then return settle(counted, '') end
  return settle(offset and isNear(offset, agreed) and offset or agreed, 'corrected')
end
local isDoubtOver = doubtedMs and math.abs(nowMs - doubtedMs) >= LONGEST_DOUBT_MS
if not hasJumped then
  if agreed and (not offset or isNear(offset, agreed)) then
    return settle(offset or agreed, isNear(agreed, 0) and '' or 'believed')
  end
  if not agreed and not offset then return settle(0, '') end
  if not agreed and isNear(offset, 0) then
    put(secondsOf(offset) .. ':p')
    return { secondsOf(offset), secondsOf(offset), '' }
  end
end
if isDoubtOver then return settle(not hasJumped and agreed or 0, '') end
if not doubtedMs then put('d' .. string.format('%.0f', nowMs)) end
local offsets = { 0, offset or -(tonumber(clock[3] or '') or 0), agreed or 0 }
return {
  secondsOf(math.min(unpack(offsets))), secondsOf(math.max(unpack(offsets))), doubtedMs and '' or 'doubted',
}
