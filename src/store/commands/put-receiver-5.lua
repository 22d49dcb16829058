--[[
  Stores a receiver that is made through the API, and has all processes read such receivers again.

  KEYS
    addedReceivers         hash    name -> what is stored of it
    addedReceiversVersion  string  counts changes of `added`
    receivers              hash    name -> definition for the registry
    cursors                hash    receiver -> entry of the event log
    events                 stream  the event log

  ARGV
    name        text
    encrypted   text             what is stored of it
    definition  text             its definition for the registry
    as          "new" | "other"  "new": there must be none of this name; "other": in the place of the one that there is
    before      text?            what must be stored of it; none for anything
    most        number           the most that there may be

  returns "stored" | "full" | "changed" | "taken" | "missing"
    "full" where there are as many already; "changed" where something else is stored of it; "taken" where a receiver of the
    config, or one that was made before, has this name; "missing" where there is none to replace.
]]
local isAdded = redis.call('HEXISTS', KEYS.addedReceivers, ARGV.name) == 1
if ARGV.as == 'other' then
  if not isAdded then return 'missing' end
  if ARGV.before ~= '' and redis.call('HGET', KEYS.addedReceivers, ARGV.name) ~= ARGV.before then return 'changed' end
else
  local known = redis.call('HGET', KEYS.receivers, ARGV.name)
  if isAdded or (known and string.match(known, '"removed":false}$')) then return 'taken' end
  if redis.call('HLEN', KEYS.addedReceivers) >= tonumber(ARGV.most) then return 'full' end
end
redis.call('HSET', KEYS.addedReceivers, ARGV.name, ARGV.encrypted)
local newest = redis.call('XREVRANGE', KEYS.events, '+', '-', 'COUNT', 1)[1]
redis.call('HSETNX', KEYS.cursors, ARGV.name, newest and newest[1] or '0-0')
redis.call('HSET', KEYS.receivers, ARGV.name, ARGV.definition)
redis.call('INCR', KEYS.addedReceiversVersion)
return 'stored'
