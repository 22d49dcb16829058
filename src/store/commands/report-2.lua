--[[
  Appends an event about the daemon itself, once: the same mark is not appended twice in a row.

  KEYS
    reports  hash    number of events of each subject; `<subject>|last`: the mark of its newest; `<subject>|once`: marks
                     that are not reported again, JSON array
    events   stream  the event log

  ARGV
    subject  text  subject id
    id       text  event id
    event    text  event JSON (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)
    mark     text  mark of the report, the same in every process and at another try
    isOnce   flag  true when it is not reported again after another one either; the newest 20 of those are stored

  returns flag
    False when the event was appended before.
]]
-- @include operator-event
local MOST_MARKS = 20
local last, mark = ARGV.subject .. '|last', ARGV.mark
if redis.call('HGET', KEYS.reports, last) == mark then return 0 end
if ARGV.isOnce == '1' then
  local once = ARGV.subject .. '|once'
  local marks = cjson.decode(redis.call('HGET', KEYS.reports, once) or '[]')
  for _, other in ipairs(marks) do
    if other == mark then return 0 end
  end
  marks[#marks + 1] = mark
  if #marks > MOST_MARKS then table.remove(marks, 1) end
  redis.call('HSET', KEYS.reports, once, cjson.encode(marks))
end
redis.call('HSET', KEYS.reports, last, mark)
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS.reports, ARGV.subject, 1))
appendOperatorEvent(KEYS.events, ARGV.event, { subject = ARGV.subject, sequence = sequence, id = ARGV.id, from = 'ok' })
return 1
