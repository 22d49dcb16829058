--[[
  Removes a receiver that was added through the API. Its backlog stays, as that of a receiver removed from the config.

  KEYS
    addedReceivers         hash    name -> its stored text
    addedReceiversVersion  string  counts changes of `addedReceivers`
    receivers              hash    name -> definition for the registry

  ARGV
    name  text

  returns flag
    False when there was none.
]]
if redis.call('HDEL', KEYS.addedReceivers, ARGV.name) == 0 then return 0 end
local stored = redis.call('HGET', KEYS.receivers, ARGV.name)
if stored then
  redis.call('HSET', KEYS.receivers, ARGV.name, (string.gsub(stored, '"removed":false}$', '"removed":true}')))
end
redis.call('INCR', KEYS.addedReceiversVersion)
return 1
