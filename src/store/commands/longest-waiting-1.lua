--[[
  Returns the time of the last successful poll of the longest-waiting subject that the config wants. Subjects that have left the
  config are polled with spare budget, and do not count.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    kind  text  kind of subject

  returns number?
    Time of that poll, ms.
]]
local polled = KEYS.plan .. ':polled:' .. ARGV.kind
local step, most = 100, 20000
for from = 0, most - 1, step do
  local rows = redis.call('ZRANGE', polled, from, from + step - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local item = redis.call('HGET', KEYS.plan .. ':items', rows[i])
    if not item or string.sub(item, 1, 6) ~= 'spare ' then return rows[i + 1] end
  end
  if #rows < 2 * step then return '' end
end
return ''
