--[[
  Holds what is counted of subjects against what they stand at, and counts anew what differs. Commits count all that they
  store; this finds what an older version has stored, and what was lost or written by something else.

  KEYS[1] plan       hash    clock of the plan of their endpointGroup (include/plan.lua)
  KEYS[2] counts     hash    "<kind>|<status>" -> number of tracked subjects; open transfers stand in keys that begin with it
  KEYS[3] cursors    hash    where the last call ended among the open transfers

  ARGV[1] prefix of the keys of snapshots
  ARGV[2] how many open transfers to look through, about
  ARGV[3..] subject, commit of its snapshot, "<kind>|<status>", what it is counted as among open transfers (see
            include/open-transfers.lua), …

  Returns what was counted wrongly: subjects, and "open" where the sums were others than those of their transfers. What was
  not counted yet is counted without a word.
]]
-- @include open-transfers
-- @include counted
local OPEN_STATES = { 'pending', 'overdue', 'expired', 'failed', 'refundable' }
local items, sums = KEYS[1] .. ':items', KEYS[2] .. ':open'
local wrong = {}

for i = 3, #ARGV, 4 do
  local subject, commit, counted, open = unpack(ARGV, i, i + 3)
  local key = ARGV[1] .. subject
  if redis.call('HGET', key, 'commit') == commit and redis.call('HEXISTS', items, subject) == 1 then
    local noted = redis.call('HGET', key, 'open')
    local state = string.match(noted or '', '^%l*')
    -- For one that is counted by its state alone there may be room by now.
    local isRight = not noted or noted == state .. '|*||' or string.find(open, noted .. '|', 1, true) == 1
    noteCounted(key, KEYS[2], counted)
    noteOpen(key, KEYS[2], subject, open)
    if not isRight then wrong[#wrong + 1] = subject end
  end
end

for _, state in ipairs(OPEN_STATES) do
  local at = redis.call('HGET', KEYS[3], ':open:' .. state) or '0'
  local reply = redis.call('ZSCAN', sums .. ':' .. state, at, 'COUNT', ARGV[2])
  redis.call('HSET', KEYS[3], ':open:' .. state, reply[1])
  for i = 1, #reply[2], 2 do
    local subject = reply[2][i]
    if redis.call('HEXISTS', items, subject) == 0 then
      leaveOpen(ARGV[1] .. subject, KEYS[2], subject)
      redis.call('ZREM', sums .. ':' .. state, subject)
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

-- All of them at once: it takes as long as there are open transfers, and keys were lost.
if isOff() then
  local since = {}
  for _, state in ipairs(OPEN_STATES) do
    local all = redis.call('ZRANGE', sums .. ':' .. state, '0', '-1', 'WITHSCORES')
    redis.call('DEL', sums .. ':' .. state)
    for i = 1, #all, 2 do since[all[i]] = all[i + 1] end
  end
  redis.call('DEL', sums)
  for subject, score in pairs(since) do
    local key = ARGV[1] .. subject
    local noted = redis.call('HGET', key, 'open')
    redis.call('HDEL', key, 'open')
    if noted then noteOpen(key, KEYS[2], subject, noted .. '|' .. string.format('%.0f', score)) end
  end
  wrong[#wrong + 1] = 'open'
end
return wrong
