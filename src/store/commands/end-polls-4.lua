--[[
  Ends polls: schedules the next one of each, or ends the tracking of its subject. Stores the observations of the polls.

  KEYS
    plan           hash  clock of the plan (include/plan.lua)
    endpointGroup  hash  state of the endpoint group (include/endpoint-group.lua)
    wanted         hash  subscription key -> time from which a subscription names it (ms)
    counts         hash  "<kind>|<status>" -> number of tracked subjects

  ARGV
    atMs           text?  time of the plan, ms; none for Redis time
    subjectPrefix  text   prefix of the keys of snapshots
    claimsPrefix   text   prefix of the keys of claims
    factsPrefix    text   prefix of the keys of observations of the pages of a wallet
    openPrefix     text   prefix of the keys of transfers of a wallet that have not ended
    polls          ...(member text, token text, subject text, outcome "next" | "failed" | "back" | "finish", virtualSeconds number, restMs number, latestMs number?, alarmMs number?, lane "fair" | "first", observed json)
                          member: as in the plan: the subject, or a page of its sweep
                          token: token of the started claim
                          outcome: next: polled with success; failed: it failed, and waits; back: no poll was made, or it has
                          no meaning for the subject; finish: tracking has ended
                          virtualSeconds: virtual wait until the next poll, seconds at a price of 1 since the claim
                          restMs: ms for which it rests before
                          latestMs: ms after which it is overdue; none for never
                          alarmMs: ms after which it is requested; none for never
                          lane: "first" for a subject that the upstream has not shown yet
                          observed: { facts: [field, value, …], open: [subject, value, …], unread: [subject, value, …],
                          moves, ended: [subject, …], version: [before the poll or "", after it], shown: [subject, …],
                          covered: [subject, ms to its alarm or "", virtual wait, longest wait in ms, …], coverMs }:
                          subjects that a page has shown, and those that need no poll of their own as long as pages show them

  returns list of text
    For each poll "stale" when the claim is another's by now: then only the observations are stored; "answer" when the state of
    the endpoint group needs this answer; "error <reason>" when it could not be ended; else "".
]]
-- @include plan
-- @include shorten
-- @include open-transfers
-- @include wallet-open
-- @include claims
-- @include suspended
-- @include confirmed-time
-- @include ended
-- @include tracking
local plan = openPlan(KEYS.plan, ARGV.atMs)
local key = plan.key

-- Stores the transfers of a wallet that have not ended. They have the new version only if this process knows all of them.
local function noteOpen(open, facts, seen)
  local isWhole = (redis.call('HGET', open, 'version') or '') == seen.version[1]
  withAll('HSET', open, seen.open)
  -- A transfer that was committed since the poll began is noted by that poll, or is noted no more: it has ended.
  if seen.unread and #seen.unread > 0 then
    if number(redis.call('HGET', facts, 'moves'), 0) == seen.moves then
      withAll('HSET', open, seen.unread)
    else
      isWhole = false
    end
  end
  withAll('HDEL', open, seen.ended)
  setOpenVersion(open, isWhole and seen.version[2] or seen.version[2] .. '?')
end

-- Returns nothing where the state of the endpoint group decides.
local function endPoll(at)
  local member, subject, outcome = ARGV.polls[at].member, ARGV.polls[at].subject, ARGV.polls[at].outcome
  local subjectKey, claimsKey = ARGV.subjectPrefix .. subject, ARGV.claimsPrefix .. subject
  local facts, open = ARGV.factsPrefix .. subject, ARGV.openPrefix .. subject
  local seen = cjson.decode(ARGV.polls[at].observed)

  if seen.facts then withAll('HSET', facts, seen.facts) end
  if seen.version then noteOpen(open, facts, seen) end
  if seen.shown then
    local shown, polledAt = {}, wholeMs(plan.redisNow)
    for _, member in ipairs(seen.shown) do
      local place = polledKey(plan, member)
      shown[place] = shown[place] or {}
      table.insert(shown[place], polledAt)
      table.insert(shown[place], member)
    end
    for place, values in pairs(shown) do zaddAll(place, 'XX', values) end
  end
  if seen.covered and #seen.covered > 0 then
    local covered = {}
    for i = 1, #seen.covered, 4 do covered[#covered + 1] = seen.covered[i] end
    local rests = scoresOf(key .. ':resting', covered)
    for index, member in ipairs(covered) do
      local alarmMs, virtual, latestMs = unpack(seen.covered, 4 * index - 2, 4 * index)
      cover(plan, member, ARGV.claimsPrefix .. member, { ms = seen.coverMs, alarmMs = alarmMs, virtual = virtual, latestMs = latestMs, rests = rests[index] })
    end
  end

  local claim = readClaim(redis.call('HGET', key .. ':claims', member))
  if not claim or claim.token ~= ARGV.polls[at].token then return 'stale' end
  endClaim(plan, member)
  local item = getItem(plan, member)
  if not item then return '' end

  if outcome == 'next' or outcome == 'failed' or outcome == 'finish' then
    redis.call('HDEL', key .. ':crashes', member)
    item.own = plan.now
  end
  if claim.lane == 'failing' then
    local counts = redis.call('HMGET', key, 'failTries', 'failOks')
    local tries, oks = number(counts[1], 0), number(counts[2], 0)
    redis.call(
      'HSET', key, 'failTries', string.format('%.6f', tries * 0.9 + 1),
      'failOks', string.format('%.6f', oks * 0.9 + ((outcome == 'next' or outcome == 'finish') and 1 or 0))
    )
  end
  -- A poll without a result leaves the alarm set.
  local isAlarmed = outcome ~= 'next' and outcome ~= 'finish'

  -- A page is tracked as long as its sweep goes on; a subject as long as a claim wants it.
  local wanted, named, current = wantedBy(subject, claimsKey, KEYS.wanted)
  local again = item.again and wanted
  if not wanted or (outcome == 'finish' and not again) then
    if member == subject then
      finish(plan, subject, { subject = subjectKey, claims = claimsKey, counts = KEYS.counts }, named)
    else
      removeMember(plan, member)
    end
  else
    item.again = false
    -- Its subscriptions may have been removed from the config, or come back.
    local isSpare = isOut(claimsKey, KEYS.wanted, current)
    if not isSpare and item.lane == 'spare' then item.lane = 'fair' end
    item.latest = ARGV.polls[at].latestMs == '' and 0 or plan.now + tonumber(ARGV.polls[at].latestMs)
    item.v = claim.v + number(ARGV.polls[at].virtualSeconds, 0)
    if again and outcome ~= 'failed' then
      item.lane = isSpare and 'spare' or 'requested'
      setItem(plan, member, item)
      enter(plan, member, item)
    elseif outcome == 'failed' then
      -- A request meanwhile does not shorten its backoff, or it would be requested without end.
      item.fails = item.fails + 1
      -- A requested subject stays requested: the failed poll has not found out the answer.
      item.lane = isSpare and 'spare' or (again or item.lane == 'requested') and 'requested' or 'fair'
      item.latest = 0
      -- After a first failure it is polled again like any other; further failures put it into the failing lane.
      rest(plan, member, item, math.max(1, tonumber(ARGV.polls[at].restMs)), item.fails < 2 and ':resting' or ':failing')
    else
      if outcome == 'next' then
        item.fails = 0
        item.lane = ARGV.polls[at].lane
      end
      if isSpare then item.lane = 'spare' end
      -- Any other outcome has ended the suspicion.
      if outcome == 'back' and isSuspect(plan, member) then
        rest(plan, member, item, math.max(1, tonumber(ARGV.polls[at].restMs)), ':suspects')
      else
        rest(plan, member, item, tonumber(ARGV.polls[at].restMs))
      end
      if ARGV.polls[at].alarmMs ~= '' and not isSpare then
        redis.call('ZADD', key .. ':alarms', text(plan.now + tonumber(ARGV.polls[at].alarmMs)), member)
        isAlarmed = true
      end
    end
    if not isAlarmed then redis.call('ZREM', key .. ':alarms', member) end
    if outcome == 'next' then redis.call('ZADD', polledKey(plan, member), wholeMs(plan.redisNow), member) end
  end

  if outcome == 'back' then return '' end
end

local endpointGroup = redis.call('HMGET', KEYS.endpointGroup, 'state', 'failures', 'pauses', 'probing')
local isQuiet = (endpointGroup[1] or 'ok') == 'ok' and (endpointGroup[2] or '0') == '0' and (endpointGroup[3] or '0') == '0' and endpointGroup[4] ~= '1'
local replies = {}
for at = 1, #ARGV.polls do
  -- What is wrong with the keys of one subject concerns no other.
  local isEnded, reply = pcall(endPoll, at)
  if not isEnded then reply = 'error ' .. (type(reply) == 'table' and reply.err or tostring(reply)) end
  replies[at] = reply or (isQuiet and '' or 'answer')
end
return replies
