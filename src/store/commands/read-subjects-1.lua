--[[
  Reads many subjects at one time, and marks the untracked ones among them as shown.

  KEYS
    plan  hash  clock of the plan of their endpointGroup (include/plan.lua)

  ARGV
    subjectPrefix  text     prefix of the keys of snapshots
    claimsPrefix   text     prefix of the keys of claims
    areShown       flag     true when a response shows them
    isWhole        flag     false to read snapshots alone
    promised       text     key of the promises of quotes to intents
    subjects       ...text  subject ids

  returns list of [snapshot hash, claims hash, polledAtMs number?, promised text, fault text]
    For each subject its fields, its claims, the time of its last successful poll, and the promise of its quote or "".
    fault: why its keys could not be read; "" where they were
]]
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
local function readOne(subject)
  local kind = string.match(subject, '^([^:]*):')
  local key = ARGV.subjectPrefix .. subject
  local prefix = prefixOf(key, subject)
  if
    ARGV.areShown == '1' and (redis.call('EXISTS', key) == 1 or restoreCompact(prefix, subject))
    and redis.call('HEXISTS', KEYS.plan .. ':items', subject) == 0
  then
    noteEnded(key, subject)
    -- The current claims show which ones were notified of its state, which may have expired from the log.
    if redis.call('HEXISTS', key, 'compact') == 1 then currentClaims(ARGV.claimsPrefix .. subject, prefix .. ':wanted') end
  end
  local isWhole = ARGV.isWhole == '1'
  local fields, claims = redis.call('HGETALL', key), isWhole and redis.call('HGETALL', ARGV.claimsPrefix .. subject) or {}
  if #fields == 0 and ARGV.areShown ~= '1' then
    local _, compactFields, compactClaims = readCompact(prefix, subject)
    if compactFields then fields, claims = compactFields, isWhole and compactClaims or {} end
  end
  return {
    fields,
    claims,
    isWhole and redis.call('ZSCORE', KEYS.plan .. ':polled:' .. kind, subject) or '',
    isWhole and redis.call('HGET', ARGV.promised, subject) or '',
    '',
  }
end

local replies = {}
for i = 1, #ARGV.subjects do
  -- What is wrong with the keys of one subject concerns no other.
  local isRead, reply = pcall(readOne, ARGV.subjects[i])
  if not isRead then reply = { {}, {}, '', '', type(reply) == 'table' and reply.err or tostring(reply) } end
  replies[i] = reply
end
return replies
