--[[
  The fence of a lease (lease-2.lua): a process that was stopped for longer than its lease writes nothing over what the next
  holder has written. An expired lease that no other process has acquired since refuses nothing.
]]
local function isFenced(lease, fence, token)
  local holder = redis.call('GET', lease)
  if holder then return holder ~= token end
  return redis.call('GET', fence) ~= string.match(token, '^%d+')
end
