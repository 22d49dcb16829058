--[[
  Compares the values that a process has seen with those in Redis, and counts a tick where Redis has no less (see store/epoch.ts).

  KEYS
    epoch   hash    epoch of the event log
    events  stream  the event log
    commit  string  the commit counter
    config  hash    the newest config

  ARGV
    epoch        number  epoch that was seen; 0 for none
    revision     number  revision of the config in it
    commits      number
    ticks        number
    isTruncated  flag    true when Redis is known to have lost writes
    entry        text    newest entry of the log in it; "0-0" for none

  returns
    result       "current" | "behind"  "behind" where the caller begins the next epoch
    epoch        number
    state        "" | "current" | "behind" | "synchronised"
    atMs         text?               time at which it began
    revision     number
    digest       text
    commits      number
    ticks        number
    tickMs       text?               time of the last tick
    entry        text                newest entry
    wanted       text                digest of the wanted config
    lostFromMs   text?               time from which writes were lost
    lostUntilMs  text?               time until which writes were lost
    reason       text
]]
local names = { 'epoch', 'state', 'atMs', 'ticks', 'tickMs', 'digest', 'lostFromMs', 'lostUntilMs', 'reason' }
local values = redis.call('HMGET', KEYS.epoch, unpack(names))
local stored = {}
for index, name in ipairs(names) do stored[name] = values[index] or '' end
local function number(text) return tonumber(text or '') or 0 end

local config = redis.call('HMGET', KEYS.config, 'generation', 'digest')
local counter = redis.call('GET', KEYS.commit) or ''
-- A counter that was lost alone is repaired by the next commit.
local commits = string.match(counter, '^%d+$') and tonumber(counter) <= 1e15 and tonumber(counter) or nil
local epoch, revision, ticks = number(stored.epoch), number(config[1]), number(stored.ticks)
local seen = { epoch = number(ARGV.epoch), revision = number(ARGV.revision), commits = number(ARGV.commits), ticks = number(ARGV.ticks) }

if epoch == 0 and seen.epoch == 0 then
  redis.call('HSET', KEYS.epoch, 'epoch', '1', 'state', 'current')
  epoch, stored.state = 1, 'current'
end
local function isBefore(entry, other)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  local otherMs, otherCount = string.match(other, '^(%d+)%-(%d+)$')
  ms, count, otherMs, otherCount = number(ms), number(count), number(otherMs), number(otherCount)
  return ms < otherMs or (ms == otherMs and count < otherCount)
end
-- An entry leaves the log by retention only.
local function isLost(entry)
  if entry == '0-0' or #redis.call('XRANGE', KEYS.events, entry, entry) > 0 then return false end
  return isBefore(redis.call('GET', KEYS.events .. ':trimmed') or '0-0', entry)
end

-- A copy from before the first commit has neither a counter nor a log.
local isEmptied = counter == '' and seen.commits > 0 and redis.call('EXISTS', KEYS.events) == 0
local hasLess = epoch < seen.epoch or (epoch == seen.epoch and (
  isEmptied or revision < seen.revision or ticks < seen.ticks or (commits ~= nil and commits < seen.commits) or isLost(ARGV.entry)
))
local isBehind = hasLess or (ARGV.isTruncated == '1' and stored.state ~= 'behind')
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if not isBehind then
  ticks = redis.call('HINCRBY', KEYS.epoch, 'ticks', 1)
  redis.call('HSET', KEYS.epoch, 'tickMs', now)
  stored.tickMs = now
end
local last = redis.call('XREVRANGE', KEYS.events, '+', '-', 'COUNT', 1)[1]
local newest = last and last[1] or '0-0'
return {
  isBehind and 'behind' or 'current', string.format('%.0f', epoch), stored.state, stored.atMs,
  string.format('%.0f', revision), config[2] or '', string.format('%.0f', commits or 0), string.format('%.0f', ticks),
  stored.tickMs, newest, stored.digest, stored.lostFromMs, stored.lostUntilMs, stored.reason,
}
