--[[
  Stores the clock measurements of a process, and advances the confirmed time. The table of its states is at the head
  of store/confirmed-time.ts.

  KEYS
    clock    hash    the confirmed time
    events   stream  the event log
    reports  hash    number of events of each subject of the daemon's own

  ARGV
    process          text
    readMs           number   Redis time as the process has read it, ms
    leastMs          number?  lower bound of it by the monotonic clock of the process, ms; none before the first
                              measurement
    mostMs           number?  upper bound of it, ms
    nowMs            number?  lower bound of it by now, ms
    moves            text     the count of moves to `steady` from which these three are measured
    wallAheadMs      number   ms by which the wall clock of the process is ahead of Redis
    upstreamAheadMs  text     ms by which the upstream is ahead of Redis in each of its newest responses, with commas between
    subject          text     subject id
    jumped           text     event JSON of a jump (with %SEQ%, %EPOCH%, %ID%, %FROM%, %CLOCK%, "%AHEAD%" to be filled in)
    differs          text     event JSON of a clock that differs (the same)

  returns
    redisMs      number  Redis time
    confirmedMs  text?
    state        text
    moves        text
    heldFromMs   text?
    jumpMs       text?
    upstreamMs   text?
    isHeld       flag

  The reply is that of read-clock-1.lua.
]]
-- @include operator-event
-- @include read-clock
local CLOCKS = {
  -- Clocks that differ by less count as equal.
  TOLERANCE = 120000,
  -- Number of responses that have to agree.
  ENOUGH = 3,
  -- Time for which a measurement of a process counts after its last round.
  LIVES = 60000,
  -- A measurement that reaches Redis later than that has no meaning for its clock now.
  LATE = 10000,
  -- After this time by the monotonic clock Redis time counts.
  LONGEST_HELD = 86400000,
}
local key = KEYS.clock
local process, read = ARGV.process, tonumber(ARGV.readMs)
local time = redis.call('TIME')
if math.abs(time[1] * 1000 + time[2] / 1000 - read) > CLOCKS.LATE then return readClock(key) end

local stored, fields = {}, redis.call('HGETALL', key)
for index = 1, #fields, 2 do stored[fields[index]] = fields[index + 1] end
local function number(name) return tonumber(stored[name] or '') end
local function text(value) return string.format('%.0f', value) end
local function put(name, value)
  if type(value) == 'number' then value = text(value) end
  if value == stored[name] then return end
  stored[name] = value
  if value then redis.call('HSET', key, name, value) else redis.call('HDEL', key, name) end
end
local function report(template, word, ahead, clock)
  local sequence = text(redis.call('HINCRBY', KEYS.reports, ARGV.subject, 1))
  local event = string.gsub(template, '"%%AHEAD%%"', string.format('%.0f', ahead / 1000))
  event = string.gsub(event, '%%CLOCK%%', clock)
  appendOperatorEvent(KEYS.events, event, { subject = ARGV.subject, sequence = sequence, word = word, from = 'ok' })
end

-- Without a confirmed time Redis time counts, unless the log shows that all was stopped.
if not number('confirmedMs') then
  local newest = redis.call('XREVRANGE', KEYS.events, '+', '-', 'COUNT', 1)[1]
  put('confirmedMs', math.min(newest and tonumber(string.match(newest[1], '^(%d+)')) or read, read))
  put('state', 'steady')
  put('moves', 1)
end
local confirmed = number('confirmedMs')
local before = stored.state

-- Removes the comparisons of clocks with the earlier Redis time.
local function removeDates()
  put('upstreamMs', nil)
  for name in pairs(stored) do
    if string.match(name, '^dates:') then put(name, nil) end
  end
end

-- Makes Redis time count. Earlier measurements have no meaning from then on.
local function settle(to)
  local by = to - confirmed
  confirmed = to
  for _, name in ipairs({ 'waitFromMs', 'offAtMs' }) do
    if number(name) then put(name, number(name) + by) end
  end
  put('state', 'steady')
  put('moves', number('moves') + 1)
  for _, name in ipairs({ 'heldFromMs', 'jumpMs', 'isReported' }) do put(name, nil) end
end

-- Difference of Redis time from the measurement of the process.
local isMeasured = ARGV.leastMs ~= '' and ARGV.moves == stored.moves
local least, most = confirmed, confirmed
if isMeasured then least, most = tonumber(ARGV.leastMs), tonumber(ARGV.mostMs) end
local jump = 0
if read > most + CLOCKS.TOLERANCE then jump = read - most end
if read < least - CLOCKS.TOLERANCE then jump = read - least end

if before == 'steady' and jump == 0 then
  confirmed = math.max(confirmed, read)
elseif before == 'steady' then
  -- Redis time is ahead at a first round: no process ran. No clock goes back by itself.
  put('state', (isMeasured or jump < 0) and 'jumped' or 'stopped')
  put('heldFromMs', confirmed)
  put('jumpMs', jump)
  removeDates()
  if stored.state == 'jumped' then report(ARGV.jumped, 'clock_jumped', jump, 'redis') end
elseif jump == 0 then
  removeDates()
  put('lastJumpMs', number('jumpMs'))
  settle(math.max(confirmed, read))
else
  -- It jumped again, or stopped again: the wait until now no longer counts.
  if math.abs(jump - (number('jumpMs') or jump)) > CLOCKS.TOLERANCE then
    if isMeasured then put('state', 'jumped') end
    put('heldFromMs', confirmed)
    put('jumpMs', jump)
    put('isReported', nil)
    removeDates()
    if isMeasured then report(ARGV.jumped, 'clock_jumped', jump, 'redis') end
  end
  if isMeasured then confirmed = math.max(confirmed, tonumber(ARGV.nowMs)) end
end

-- The state of the upstream's clock by the latest responses, to all processes that live.
put('dates:' .. process, text(confirmed) .. '|' .. ARGV.upstreamAheadMs)
local ahead = {}
for name, dates in pairs(stored) do
  if string.match(name, '^dates:') then
    local at, list = string.match(dates, '^(%d+)|(.*)$')
    if not at or math.abs(confirmed - tonumber(at)) > CLOCKS.LIVES then
      put(name, nil)
    else
      for one in string.gmatch(list, '[^,]+') do ahead[#ahead + 1] = tonumber(one) end
    end
  end
end
table.sort(ahead)
local median, agreeing = ahead[math.floor(#ahead / 2) + 1], 0
for _, one in ipairs(ahead) do
  if math.abs(one - median) <= CLOCKS.TOLERANCE then agreeing = agreeing + 1 end
end
if agreeing >= CLOCKS.ENOUGH and agreeing * 2 > #ahead then put('upstreamMs', median) end
local upstream = number('upstreamMs')
local isUpstreamOff = upstream and math.abs(upstream) > CLOCKS.TOLERANCE

if stored.state ~= 'steady' then
  local heldMs = confirmed - number('heldFromMs')
  if (upstream and not isUpstreamOff) or heldMs >= CLOCKS.LONGEST_HELD then
    -- Also backwards: then the confirmed time was wrong.
    settle(read)
  elseif heldMs >= LONGEST_WAIT_MS and not stored.isReported then
    put('isReported', 1)
    if isUpstreamOff then report(ARGV.differs, 'clock_differs', -upstream, 'redis')
    elseif stored.state == 'jumped' then report(ARGV.differs, 'clock_differs', number('jumpMs'), 'redis') end
  end
end

-- The clock that differs although all clocks advance evenly, and the time from which reminders and closings wait for it.
if math.abs(tonumber(ARGV.wallAheadMs)) > CLOCKS.TOLERANCE then
  put('offMs', tonumber(ARGV.wallAheadMs))
  put('offAtMs', confirmed)
elseif number('offAtMs') and math.abs(confirmed - number('offAtMs')) > CLOCKS.LIVES then
  put('offMs', nil)
  put('offAtMs', nil)
end
local off = number('offMs')
if stored.state == 'steady' then
  local clock, by = nil, 0
  if isUpstreamOff and off and math.abs(upstream - off) <= CLOCKS.TOLERANCE then
    clock, by = 'redis', -upstream
  elseif isUpstreamOff then
    clock, by = 'upstream', upstream
  elseif not upstream and stored.differs == 'upstream' then
    -- It differed when it answered last.
    clock, by = 'upstream', number('differsMs')
  elseif off then
    clock, by = 'process', off
  end
  put('differs', clock)
  put('differsMs', clock and by)
  if not clock then
    put('waitFromMs', nil)
    put('waits', nil)
  elseif not number('waitFromMs') then
    put('waitFromMs', confirmed)
    put('waits', 1)
  elseif stored.waits == '1' and confirmed - number('waitFromMs') >= LONGEST_WAIT_MS then
    put('waits', 0)
    report(ARGV.differs, 'clock_differs', by, clock)
  end
end
put('confirmedMs', confirmed)
return readClock(key)
