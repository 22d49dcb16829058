--[[
  Stores a receiver that is added through the API, and makes all processes read such receivers again.

  KEYS
    addedReceivers         hash    name -> its stored text
    addedReceiversVersion  string  counts changes of `addedReceivers`
    receivers              hash    name -> definition for the registry
    cursors                hash    receiver -> entry of the event log
    events                 stream  the event log

  ARGV
    name        text
    encrypted   text             its stored text
    definition  text             its definition for the registry
    as          "new" | "other"  "new": the name must be free; "other": replaces the receiver of this name
    before      text?            text that must be stored of it; none for any
    most        number           limit of such receivers

  returns "stored" | "full" | "changed" | "exists" | "missing"
    "full" at the limit; "changed" where another text is stored of it; "exists" where a receiver of the config, or one that was
    added before, has this name; "missing" where there is none to replace.
]]
local isAdded = redis.call('HEXISTS', KEYS.addedReceivers, ARGV.name) == 1
if ARGV.as == 'other' then
  if not isAdded then return 'missing' end
  if ARGV.before ~= '' and redis.call('HGET', KEYS.addedReceivers, ARGV.name) ~= ARGV.before then return 'changed' end
else
  local stored = redis.call('HGET', KEYS.receivers, ARGV.name)
  if isAdded or (stored and string.match(stored, '"removed":false}$')) then return 'exists' end
  if redis.call('HLEN', KEYS.addedReceivers) >= tonumber(ARGV.most) then return 'full' end
end
redis.call('HSET', KEYS.addedReceivers, ARGV.name, ARGV.encrypted)
local newest = redis.call('XREVRANGE', KEYS.events, '+', '-', 'COUNT', 1)[1]
redis.call('HSETNX', KEYS.cursors, ARGV.name, newest and newest[1] or '0-0')
redis.call('HSET', KEYS.receivers, ARGV.name, ARGV.definition)
redis.call('INCR', KEYS.addedReceiversVersion)
return 'stored'
