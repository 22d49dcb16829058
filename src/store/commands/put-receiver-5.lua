--[[
  Stores a receiver that is made through the API, and has all processes read such receivers again.

  KEYS[1] added      hash    name -> what is stored of it
  KEYS[2] version    string  counts changes of `added`
  KEYS[3] receivers  hash    name -> definition for the registry
  KEYS[4] cursors    hash    receiver -> entry of the event log
  KEYS[5] events     stream  the event log

  ARGV[1] name
  ARGV[2] what is stored of it
  ARGV[3] its definition for the registry
  ARGV[4] "new": there must be none of this name; "other": in the place of the one that there is
  ARGV[5] what must be stored of it, "" for anything
  ARGV[6] the most that there may be

  Returns "stored"; "full" where there are as many already; "changed" where something else is stored of it; "taken" where a receiver of the config, or one that was made before, has this name; "missing" where there
  is none to replace.
]]
local isAdded = redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1
if ARGV[4] == 'other' then
  if not isAdded then return 'missing' end
  if ARGV[5] ~= '' and redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[5] then return 'changed' end
else
  local known = redis.call('HGET', KEYS[3], ARGV[1])
  if isAdded or (known and string.match(known, '"removed":false}$')) then return 'taken' end
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[6]) then return 'full' end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local newest = redis.call('XREVRANGE', KEYS[5], '+', '-', 'COUNT', 1)[1]
redis.call('HSETNX', KEYS[4], ARGV[1], newest and newest[1] or '0-0')
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('INCR', KEYS[2])
return 'stored'
