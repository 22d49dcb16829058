--[[
  Removes a receiver that was made through the API. It keeps its backlog, as one that left the config does.

  KEYS
    addedReceivers         hash    name -> what is stored of it
    addedReceiversVersion  string  counts changes of `added`
    receivers              hash    name -> definition for the registry

  ARGV
    name  text

  returns flag
    False when there was none.
]]
if redis.call('HDEL', KEYS.addedReceivers, ARGV.name) == 0 then return 0 end
local known = redis.call('HGET', KEYS.receivers, ARGV.name)
if known then
  redis.call('HSET', KEYS.receivers, ARGV.name, (string.gsub(known, '"removed":false}$', '"removed":true}')))
end
redis.call('INCR', KEYS.addedReceiversVersion)
return 1
