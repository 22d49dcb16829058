--[[
  Appends an event about the daemon itself, once: what has the same mark is not appended twice in a row.

  KEYS[1] reports    hash    how many events each subject has; `<subject>|last`: the mark of its newest; `<subject>|once`:
                             the marks that are not reported again, JSON array
  KEYS[2] events     stream  the event log

  ARGV[1] subject id
  ARGV[2] event id
  ARGV[3] event JSON  (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)
  ARGV[4] mark: what is reported, the same in every process and at another try; left out, it is the event id
  ARGV[5] "1" where it is not reported again either after another one; of those the newest 20 are known

  Returns 1 when the event was appended, 0 when it was before.
]]
-- @include operator-event
local MOST_KNOWN = 20
local last, mark = ARGV[1] .. '|last', ARGV[4] or ARGV[2]
if redis.call('HGET', KEYS[1], last) == mark then return 0 end
if ARGV[5] == '1' then
  local once = ARGV[1] .. '|once'
  local known = cjson.decode(redis.call('HGET', KEYS[1], once) or '[]')
  for _, other in ipairs(known) do
    if other == mark then return 0 end
  end
  known[#known + 1] = mark
  if #known > MOST_KNOWN then table.remove(known, 1) end
  redis.call('HSET', KEYS[1], once, cjson.encode(known))
end
redis.call('HSET', KEYS[1], last, mark)
local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], ARGV[1], 1))
appendOperatorEvent(KEYS[2], ARGV[3], { subject = ARGV[1], sequence = sequence, id = ARGV[2], from = 'ok' })
return 1
