--[[
  When the subject was last looked at with success that has waited longest for it, of those that the config wants: what has
  left it is polled with spare budget, and says nothing of the rest.

  KEYS
    plan  hash  clock of the plan (include/plan.lua)

  ARGV
    kind  text  kind of subject

  returns number?
    The time, ms.
]]
local looked = KEYS.plan .. ':polled:' .. ARGV.kind
local step, most = 100, 20000
for from = 0, most - 1, step do
  local rows = redis.call('ZRANGE', looked, from, from + step - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local item = redis.call('HGET', KEYS.plan .. ':items', rows[i])
    if not item or string.sub(item, 1, 6) ~= 'spare ' then return rows[i + 1] end
  end
  if #rows < 2 * step then return '' end
end
return ''
