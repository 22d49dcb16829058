-- Place of a receiver in the event log. A missing or malformed one is the beginning.
local function cursorOf(cursors, receiver)
  return string.match(redis.call('HGET', cursors, receiver) or '', '^%d+%-%d+$') or '0-0'
end
