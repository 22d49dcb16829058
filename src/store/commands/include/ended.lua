-- Subjects that are no longer tracked (see store/ended-subjects.ts for their states). Needs include/confirmed-time.lua before it.
--   <prefix>:ended  zset  subject -> time from which it is in its state, ms

-- Returns the prefix of all keys, from the key of a snapshot.
local function prefixOf(subjectKey, subject) return string.sub(subjectKey, 1, #subjectKey - #subject - #':subject:') end

-- Records that a subject was shown, or that its tracking has ended, now.
local function noteEnded(subjectKey, subject)
  local prefix = prefixOf(subjectKey, subject)
  local now = string.format('%.0f', stampMs(prefix .. ':clock'))
  redis.call('ZADD', prefix .. ':ended', 'GT', now, subject)
  if redis.call('HEXISTS', subjectKey, 'compact') == 1 then
    redis.call('HSET', subjectKey, 'shownAtMs', now)
    redis.call('HDEL', subjectKey, 'absentAtMs')
  end
end
