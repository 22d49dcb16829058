--[[
  When the subject was last looked at with success that has waited longest for it, of those that the config wants: what has
  left it is polled with spare budget, and says nothing of the rest.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)

  ARGV[1] kind of subject

  Returns the time, ms; "" where there is none.
]]
local looked = KEYS[1] .. ':polled:' .. ARGV[1]
local step, most = 100, 20000
for from = 0, most - 1, step do
  local rows = redis.call('ZRANGE', looked, from, from + step - 1, 'WITHSCORES')
  for i = 1, #rows, 2 do
    local item = redis.call('HGET', KEYS[1] .. ':items', rows[i])
    if not item or string.sub(item, 1, 6) ~= 'spare ' then return rows[i + 1] end
  end
  if #rows < 2 * step then return '' end
end
return ''
