--[[
  Events for the operator. Each has the epoch of the log, which a restore makes larger, and an id of its own: after a restore
  the sequence of its subject may repeat, but not with the same time of Redis.
]]
local function epochOf(events) return redis.call('HGET', events .. ':epoch', 'epoch') or '1' end

-- Appends an event from its template; `filled` is { subject, sequence, word, from (the state before), id (else one is made) }.
local function appendOperatorEvent(events, template, filled)
  local epoch = epochOf(events)
  local time = redis.call('TIME')
  local named = { filled.subject, filled.sequence, filled.word or '', epoch, time[1] .. '.' .. time[2] }
  local event = string.gsub(template, '%%SEQ%%', filled.sequence)
  event = string.gsub(event, '%%EPOCH%%', epoch)
  event = string.gsub(event, '%%ID%%', filled.id or 'evt_' .. redis.sha1hex(table.concat(named, '|')))
  event = string.gsub(event, '%%FROM%%', filled.from)
  return redis.call('XADD', events, '*', 'v', SCHEMA_VERSION, 'kind', 'operator', 'event', event, 'claimKeys', '[]')
end
