--[[
  Writes a receiver that was made through the API into the registry, as a process knows it; not one that was removed meanwhile.

  KEYS[1] added      hash    name -> what is stored of it
  KEYS[2] receivers  hash    name -> definition for the registry
  KEYS[3] cursors    hash    receiver -> entry of the event log
  KEYS[4] events     stream  the event log

  ARGV[1] name
  ARGV[2] its definition for the registry

  Returns 1; 0 where there is none of this name any more.
]]
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
local newest = redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', 1)[1]
redis.call('HSETNX', KEYS[3], ARGV[1], newest and newest[1] or '0-0')
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return 1
