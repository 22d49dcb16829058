--[[
  The transfers of a wallet that have not ended: a hash from their short ids to their states, with `version`. A process that has
  them in memory compares the version. Each script that changes them gives them another one.
]]
local function setOpenVersion(key, version)
  if redis.call('HLEN', key) == redis.call('HEXISTS', key, 'version') then
    redis.call('DEL', key)
  else
    redis.call('HSET', key, 'version', version)
  end
end
