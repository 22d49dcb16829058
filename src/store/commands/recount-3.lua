--[[
  Compares the counts of subjects with their states, and counts again where they differ. Commits count all that they store;
  this finds data that was lost or overwritten.

  KEYS
    plan           hash  clock of the plan of their endpointGroup (include/plan.lua)
    counts         hash  "<kind>|<status>" -> number of tracked subjects; keys of open transfers begin with it
    repairCursors  hash  place at which the last call ended among the open transfers

  ARGV
    subjectPrefix  text    prefix of the keys of snapshots
    count          number  number of open transfers to check, about
    subjects       ...(subject text, commit number, counted text, open text)
                           `commit` is that of its snapshot, `counted` its "<kind>|<status>", `open` its count among open
                           transfers (see include/open-transfers.lua)

  returns list of text
    Wrong counts: subjects, and "open" where the sums differed from those of their transfers. Subjects without a count are
    counted without a report.
]]
-- @include shorten
-- @include open-transfers
-- @include counted
local OPEN_STATES = { 'pending', 'overdue', 'expired', 'failed', 'refundable' }
local items, sums = KEYS.plan .. ':items', KEYS.counts .. ':open'
local wrong = {}

-- Start times of the transfers whose count is right, by state: time and subject in turn.
local since = {}
for i = 1, #ARGV.subjects do
  local subject, commit = ARGV.subjects[i].subject, ARGV.subjects[i].commit
  local counted, open = ARGV.subjects[i].counted, ARGV.subjects[i].open
  local key = ARGV.subjectPrefix .. subject
  local stored = redis.call('HMGET', key, 'commit', 'counted', 'open', 'open1')
  if stored[1] == commit and redis.call('HEXISTS', items, subject) == 1 then
    local noted = stored[3] and expand(stored[3] .. (stored[4] or ''))
    local state = string.match(noted or '', '^%l*')
    if stored[2] ~= counted then noteCounted(key, KEYS.counts, counted) end
    if noted and noted == string.match(open, '^(.*)|%d+$') then
      since[state] = since[state] or {}
      table.insert(since[state], string.match(open, '(%d+)$'))
      table.insert(since[state], shorten(subject))
    elseif noted or open ~= '' then
      noteOpen(key, KEYS.counts, subject, open)
      -- For a transfer that is counted by its state alone there may be a free place by now.
      if noted and noted ~= state .. '|*||' then wrong[#wrong + 1] = subject end
    end
  end
end
for state, times in pairs(since) do
  for from = 1, #times, 1000 do redis.call('ZADD', sums .. ':' .. state, unpack(times, from, math.min(from + 999, #times))) end
end

for _, state in ipairs(OPEN_STATES) do
  local at = redis.call('HGET', KEYS.repairCursors, ':open:' .. state) or '0'
  local reply = redis.pcall('ZSCAN', sums .. ':' .. state, at, 'COUNT', ARGV.count)
  -- A place that another program wrote.
  if reply.err then reply = redis.call('ZSCAN', sums .. ':' .. state, '0', 'COUNT', ARGV.count) end
  redis.call('HSET', KEYS.repairCursors, ':open:' .. state, reply[1])
  for i = 1, #reply[2], 2 do
    local subject = expand(reply[2][i])
    if redis.call('HEXISTS', items, subject) == 0 then
      leaveOpen(ARGV.subjectPrefix .. subject, KEYS.counts, subject)
      redis.call('ZREM', sums .. ':' .. state, reply[2][i])
      wrong[#wrong + 1] = subject
    end
  end
end

local function isOff()
  local found = {}
  local all = redis.call('HGETALL', sums)
  for i = 1, #all, 2 do
    local state = string.match(all[i], '^(%l+)|[^|]*|[^|]*$')
    if state then found[state] = (found[state] or 0) + (tonumber(all[i + 1]) or 0 / 0) end
  end
  for _, state in ipairs(OPEN_STATES) do
    if (found[state] or 0) ~= redis.call('ZCARD', sums .. ':' .. state) then return true end
  end
  return false
end

-- Counts all at once: the time grows with the number of open transfers, but this happens only after a loss of keys.
if isOff() then
  local since = {}
  for _, state in ipairs(OPEN_STATES) do
    local all = redis.call('ZRANGE', sums .. ':' .. state, '0', '-1', 'WITHSCORES')
    redis.call('DEL', sums .. ':' .. state)
    for i = 1, #all, 2 do since[expand(all[i])] = all[i + 1] end
  end
  redis.call('DEL', sums)
  for subject, score in pairs(since) do
    local key = ARGV.subjectPrefix .. subject
    local noted = readNoted(key)
    redis.call('HDEL', key, 'open', 'open1')
    if noted then noteOpen(key, KEYS.counts, subject, expand(noted) .. '|' .. string.format('%.0f', score)) end
  end
  wrong[#wrong + 1] = 'open'
end
return wrong
