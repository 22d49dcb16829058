--[[
  Begins the next epoch on a Redis that went back, once for all processes. Nothing is committed in it until the config is
  synchronised (see end-epoch-3.lua).

  KEYS
    epoch   hash    of the event log
    events  stream  the event log
    commit  string  the commit counter

  ARGV
    found    number   epoch that the caller found; 0 for none
    next     number   the next one
    commits  number   commits that were seen
    entry    text     newest entry of the log that was seen
    digest   text     digest of the newest config that was seen
    tickMs   number?  ms of the last tick that was seen
    reason   text

  returns flag
    False when another process did so first. Later commits and entries have greater numbers than any that were seen: answers
    under way are superseded, and cursors of readers stay valid.
]]
local stored = redis.call('HMGET', KEYS.epoch, 'epoch', 'tickMs')
if (stored[1] or '0') ~= ARGV.found then return 0 end
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', nowMs)
local lostUntil = ARGV.tickMs
-- Each process has its own last tick, and others or commits may have come later: where nothing later was seen, it ends now.
-- Without an earlier state, that tick is the start of what is polled again.
local fromMs = tonumber(stored[2] or '')
if fromMs then
  local entryMs = tonumber(string.match(ARGV.entry, '^(%d+)%-')) or 0
  local seenMs = math.max(tonumber(ARGV.tickMs) or 0, math.min(entryMs, nowMs))
  lostUntil = string.format('%.0f', seenMs > fromMs and seenMs or nowMs)
end
redis.call(
  'HSET', KEYS.epoch, 'epoch', ARGV.next, 'state', 'behind', 'atMs', now, 'digest', ARGV.digest,
  'lostFromMs', stored[2] or '', 'lostUntilMs', lostUntil, 'reason', ARGV.reason
)
local counter = redis.call('GET', KEYS.commit) or '0'
if not string.match(counter, '^%d+$') or tonumber(counter) < tonumber(ARGV.commits) then redis.call('SET', KEYS.commit, ARGV.commits) end
local function parsed(entry)
  local ms, count = string.match(entry, '^(%d+)%-(%d+)$')
  return tonumber(ms), tonumber(count)
end
if redis.call('EXISTS', KEYS.events) == 1 then
  local log = redis.call('XINFO', 'STREAM', KEYS.events)
  for index = 1, #log, 2 do
    if log[index] == 'last-generated-id' then
      local ms, count = parsed(log[index + 1])
      local seenMs, seenCount = parsed(ARGV.entry)
      if seenMs > ms or (seenMs == ms and seenCount > count) then redis.call('XSETID', KEYS.events, ARGV.entry) end
    end
  end
end
return 1
