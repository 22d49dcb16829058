-- The name of the definition of a claim's subscription key: that of its subscription, or for a subject tracked by itself
-- ("~|<subject>") the whole key.
local function definitionName(claimKey)
  if string.sub(claimKey, 1, 2) == '~|' then return claimKey end
  return string.match(claimKey, '^([^|>]*)[^|]*|')
end

local function definitionOf(name, subscriptionsKey, trackedKey)
  if string.sub(name, 1, 2) == '~|' then return redis.call('HGET', trackedKey, string.sub(name, 3)) end
  return redis.call('HGET', subscriptionsKey, name)
end
