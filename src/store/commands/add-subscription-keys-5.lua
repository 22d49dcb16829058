--[[
  Stores the subjects that subscriptions name, adds their claims, and requests their polls, in one step: a wanted subject has a
  claim, also after a crash.

  KEYS
    wanted  hash    subscription key -> time from which a subscription names it (ms); others begin with it
    plan    hash    clock of the plan of the endpoint group of these subjects (include/plan.lua)
    events  stream  the event log
    lease   string  fencing token of the process that syncs
    fence   string  the newest fencing token

  ARGV
    token          text  fencing token of the caller
    claimsPrefix   text  prefix of the keys of claims
    subjectPrefix  text  prefix of the keys of snapshots
    atMs           text?  time of the plan, ms; none for Redis time
    since          text  key of the times at which keys were subscribed on the upstream's clock
    named          ...(claimKey text, subject text, at text, from text)
                         `at` is the start (ms; "" for now), `from` the key that it continues ("" for none)

  returns number?
    Number of newly named keys; none where another process has acquired the lease. One that continues another has its claim and
    its start, and is not polled for that.
]]
-- @include plan
-- @include confirmed-time
-- @include ended
-- @include shorten
-- @include compact
-- @include fence
if isFenced(KEYS.lease, KEYS.fence, ARGV.token) then return '' end
local time = redis.call('TIME')
local nowText = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local plan = openPlan(KEYS.plan, ARGV.atMs)
local new = 0

-- Returns the newest entry that the log has had, also where it has expired.
local function newestEntry()
  if redis.call('EXISTS', KEYS.events) == 0 then return '0-0' end
  local facts = redis.call('XINFO', 'STREAM', KEYS.events)
  for at = 1, #facts, 2 do
    if facts[at] == 'last-generated-id' then return facts[at + 1] end
  end
  return '0-0'
end

for i = 1, #ARGV.named do
  local key, subject, at, from = ARGV.named[i].claimKey, ARGV.named[i].subject, ARGV.named[i].at, ARGV.named[i].from
  local claimsKey = ARGV.claimsPrefix .. subject
  local since, isNew = redis.call('HGET', KEYS.wanted, key), false
  if not since or not string.match(since, '^%d+$') then
    -- It is removed with the key: where it is there, only the key was lost.
    local lost = redis.call('HGET', ARGV.since, key)
    since = at ~= '' and at or (lost and string.match(lost, '^(%d+):')) or nowText
    isNew = true
    redis.call('HSET', KEYS.wanted, key, since)
    -- It begins anew beside the keys that continue it: only later events wait for it (release-waiting-2.lua).
    if from ~= '' then
      redis.call('HDEL', KEYS.wanted .. ':begun', key)
    elseif redis.call('HEXISTS', KEYS.wanted .. ':continued', key) == 1 then
      redis.call('HSET', KEYS.wanted .. ':begun', key, newestEntry())
    end
  end
  local upstream = from ~= '' and redis.call('HGET', ARGV.since, from)
  if upstream and string.match(upstream, '^(%d+):') == since then redis.call('HSETNX', ARGV.since, key, upstream) end
  local stored = redis.call('HGET', claimsKey, key)
  if not stored or string.match(stored, '^(%d+):') ~= since then
    local continued = from ~= '' and redis.call('HGET', claimsKey, from)
    local isContinued = continued and string.match(continued, '^(%d+):') == since
    restoreCompact(prefixOf(ARGV.subjectPrefix .. subject, subject), subject)
    redis.call('HSET', claimsKey, key, isContinued and continued or since .. '::0')
    if not isContinued then
      recall(plan, subject)
      requestPoll(plan, subject, 'first')
    end
    new = new + 1
  elseif isNew and from == '' then
    recall(plan, subject)
    requestPoll(plan, subject, 'first')
  end
end
return new
