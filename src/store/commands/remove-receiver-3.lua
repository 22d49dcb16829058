--[[
  Removes a receiver that was made through the API. It keeps its backlog, as one that left the config does.

  KEYS[1] added      hash    name -> what is stored of it
  KEYS[2] version    string  counts changes of `added`
  KEYS[3] receivers  hash    name -> definition for the registry

  ARGV[1] name

  Returns 1, or 0 when there was none.
]]
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
local known = redis.call('HGET', KEYS[3], ARGV[1])
if known then
  redis.call('HSET', KEYS[3], ARGV[1], (string.gsub(known, '"removed":false}$', '"removed":true}')))
end
redis.call('INCR', KEYS[2])
return 1
