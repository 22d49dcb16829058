--[[
  Writes a receiver that was added through the API into the registry, unless it was removed meanwhile.

  KEYS
    addedReceivers  hash    name -> its stored text
    receivers       hash    name -> definition for the registry
    cursors         hash    receiver -> entry of the event log
    events          stream  the event log

  ARGV
    name        text
    definition  text  its definition for the registry

  returns flag
    False where no receiver has this name any more.
]]
if redis.call('HEXISTS', KEYS.addedReceivers, ARGV.name) == 0 then return 0 end
local newest = redis.call('XREVRANGE', KEYS.events, '+', '-', 'COUNT', 1)[1]
redis.call('HSETNX', KEYS.cursors, ARGV.name, newest and newest[1] or '0-0')
redis.call('HSET', KEYS.receivers, ARGV.name, ARGV.definition)
return 1
