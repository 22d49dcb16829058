--[[
  The state of one endpoint group of the upstream, judged by the number of different subjects that fail.

  | state        | polls                           | moves                                                        |
  |--------------|---------------------------------|--------------------------------------------------------------|
  | ok           | all, as the budget allows       | enough different subjects fail and none succeeds between:    |
  |              |                                 | doubted; enough are refused: unauthorized; a refused key: at |
  |              |                                 | once                                                         |
  | doubted      | probes, one at a time, the next | the first success: ok; it lasts, or Retry-After is as long:  |
  |              | 2 s after one that failed       | unreachable. It is not reported: outside it is `ok`          |
  | unreachable  | one probe in 5 s, or a minute   | the first success: ok                                        |
  |              | where Retry-After is longer     |                                                              |
  | unauthorized | one probe in 15 s               | the first success: ok                                        |
  | paused       | none until the pause is over    | then probing; beside any of the states above                 |
  | probing      | one, until it is answered       | anything but 429: as before the pause; 429: paused, longer   |

  Probes rotate over the subjects, from the latest success on. "Enough" is three, or all that exist. A pause is counted once:
  a 429 for a request from before the pause can only lengthen it. After a pause the budget grows back from a half (`pace`).
  No pause begins where fewer than enough subjects are answered 429 again, with a success of another between.
]]
local ENDPOINT_GROUP = {
  ENOUGH = 3,
  FAILING_FOR = 10000,
  PROBE_EVERY = { ok = 2000, unreachable = 5000, unauthorized = 15000 },
  LONGEST_PROBE = 60000,
  LONGEST_PAUSE = 900000,
  PAUSE = 1000,
  LONGEST_STEP = 60000,
  LEAST_PACE = 0.25,
  -- Time for which a member that was answered 429 is remembered.
  THROTTLED_FOR = 600000,
  RECOVERY = 30000,
  -- A member with more failures in a row was failing before the outage.
  FAILURES_OF_OUTAGE = 2,
}

local function enoughFailures(plan)
  return math.min(ENDPOINT_GROUP.ENOUGH, math.max(1, redis.call('HLEN', plan.key .. ':items')))
end

local function openEndpointGroup(key, plan)
  local stored = redis.call(
    'HMGET', key, 'state', 'pausedUntil', 'pausedAt', 'pauses', 'probing', 'probeAt', 'probe', 'probes', 'pace', 'paceAt', 'amnesty', 'failures'
  )
  local endpointGroup = {
    key = key,
    state = ENDPOINT_GROUP.PROBE_EVERY[stored[1]] and stored[1] or 'ok',
    pausedUntil = math.min(number(stored[2], 0), plan.now + ENDPOINT_GROUP.LONGEST_PAUSE),
    pausedAt = number(stored[3], 0),
    pauses = number(stored[4], 0),
    probing = stored[5] == '1',
    probeAt = math.min(number(stored[6], 0), plan.now + ENDPOINT_GROUP.LONGEST_PROBE),
    probe = stored[7],
    probes = number(stored[8], 0),
    amnesty = stored[11] == '1',
    failures = number(stored[12], 0),
  }
  endpointGroup.doubted = endpointGroup.failures > 0 and endpointGroup.failures >= enoughFailures(plan)
  local pace = number(stored[9], 1)
  local since = math.max(0, plan.now - number(stored[10], 0))
  endpointGroup.pace = math.max(ENDPOINT_GROUP.LEAST_PACE, math.min(1, pace + since / ENDPOINT_GROUP.RECOVERY))
  return endpointGroup
end

-- Returns the polls that may be claimed: all (`open`), one probe (`probe`), or none for some ms.
local function endpointGroupGate(endpointGroup, plan)
  if endpointGroup.pausedUntil > plan.now then return { open = false, waitMs = endpointGroup.pausedUntil - plan.now } end
  local down = endpointGroup.state ~= 'ok' or endpointGroup.doubted
  if not endpointGroup.probing and not down then return { open = true } end
  if endpointGroup.probe and isClaimed(plan, endpointGroup.probe) then return { open = false, waitMs = 250 } end
  if down and endpointGroup.probeAt > plan.now then return { open = false, waitMs = endpointGroup.probeAt - plan.now } end
  return { open = true, probe = true }
end

-- Returns the next member to probe: of each kind in turn the subject that succeeded last, then the one before; `otherwise` where
-- none is found. A member that is suspected of ending its process is probed only as the last choice.
local function probeCandidate(plan, endpointGroup, kinds, otherwise)
  local total = 0
  for _, kind in ipairs(kinds) do total = math.max(total, redis.call('ZCARD', plan.key .. ':polled:' .. kind)) end
  total = total * #kinds
  for try = 0, math.min(total, 20) - 1 do
    local rank = (endpointGroup.probes + try) % total
    local place = math.floor(rank / #kinds)
    local member = redis.call('ZREVRANGE', plan.key .. ':polled:' .. kinds[rank % #kinds + 1], place, place)[1]
    if member and not isSuspect(plan, member) and not isClaimed(plan, member) then
      endpointGroup.probes = endpointGroup.probes + try
      return member
    end
  end
  return otherwise
end

local function endpointGroupProbed(endpointGroup, plan, member)
  redis.call(
    'HSET', endpointGroup.key, 'probe', member, 'probes', endpointGroup.probes + 1,
    'probeAt', text(plan.now + (ENDPOINT_GROUP.PROBE_EVERY[endpointGroup.state] or 0))
  )
end
