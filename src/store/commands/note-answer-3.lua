--[[
  Takes what became of one request into the state of the endpoint group (see include/endpoint-group.lua), and appends the operator's
  event when the state moves, in one step.

  KEYS[1] endpointGroup    hash    state of the endpoint group
  KEYS[2] events     stream  the event log
  KEYS[3] plan       hash    clock of the endpoint group's plan (include/plan.lua)

  ARGV[1] answer: ok; unreachable: no usable answer; denied: refused, perhaps only for this subject; refused: the key is
          refused; throttled: 429
  ARGV[2] member that was requested
  ARGV[3] the plan's time when the request was sent, ms
  ARGV[4] Retry-After, ms; "" for none
  ARGV[5] the plan's time, ms; "" for that of Redis
  ARGV[6] subject id of the endpoint group
  ARGV[7] event JSON for the move to unreachable  (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)
  ARGV[8] event JSON for the move to unauthorized
  ARGV[9] event JSON for the recovery from unreachable
  ARGV[10] event JSON for the recovery from unauthorized
  ARGV[11] the reason, one sentence

  Returns { state before, state after, ms of a pause that began now or "" }.
]]
-- @include plan
-- @include endpoint-group
-- @include operator-event
local plan = openPlan(KEYS[3], ARGV[5])
local endpointGroup = openEndpointGroup(KEYS[1], plan)
local answer, member, sentAt = ARGV[1], ARGV[2], tonumber(ARGV[3])
local retryAfter = tonumber(ARGV[4])
local failed, denied = KEYS[1] .. ':failed', KEYS[1] .. ':denied'
local before, after = endpointGroup.state, endpointGroup.state
local paused = ''

if answer == 'throttled' then
  -- One that is answered so again and again while others are not is no reason for them to wait: it backs off alone.
  local throttled = KEYS[1] .. ':throttled'
  local isKnown = redis.call('ZSCORE', throttled, member)
  redis.call('ZREMRANGEBYSCORE', throttled, '-inf', text(plan.now - ENDPOINT_GROUP.THROTTLED_FOR))
  redis.call('ZADD', throttled, text(plan.now), member)
  local isAlone = redis.call('ZCARD', throttled) < enoughFailures(plan)
  if isKnown and isAlone and endpointGroup.pauses == 0 and sentAt > endpointGroup.pausedAt then return { before, after, paused } end
  local askedMs = retryAfter and math.min(retryAfter, ENDPOINT_GROUP.LONGEST_PAUSE)
  if sentAt <= endpointGroup.pausedAt then
    -- Sent before the pause began, which was for this one as well.
    if askedMs and plan.now + askedMs > endpointGroup.pausedUntil then
      redis.call('HSET', KEYS[1], 'pausedUntil', text(plan.now + askedMs))
    end
  else
    local pauseMs = askedMs or math.min(ENDPOINT_GROUP.LONGEST_STEP, ENDPOINT_GROUP.PAUSE * 2 ^ math.min(endpointGroup.pauses, 10))
    pauseMs = math.max(1, pauseMs)
    redis.call(
      'HSET', KEYS[1], 'pausedUntil', text(plan.now + pauseMs), 'pausedAt', text(plan.now), 'pauses', endpointGroup.pauses + 1,
      'probing', '1', 'probe', '', 'pace', text(math.max(ENDPOINT_GROUP.LEAST_PACE, endpointGroup.pace / 2)), 'paceAt', text(plan.now + pauseMs)
    )
    paused = text(pauseMs)
  end
  return { before, after, paused }
end

-- Whatever was answered but 429 ends the probing after a pause; what was sent before it says nothing about it.
if sentAt > endpointGroup.pausedAt then redis.call('HDEL', KEYS[1], 'probing', 'pauses') end

if answer == 'ok' then
  local lasted = plan.now - number(redis.call('HGET', KEYS[1], 'since'), plan.now)
  redis.call('HDEL', KEYS[1], 'state', 'failures', 'since', 'reason', 'probes', 'probeAt', 'probe')
  redis.call('DEL', failed, denied)
  after = 'ok'
  if before ~= 'ok' and lasted >= ENDPOINT_GROUP.FAILING_FOR then redis.call('HSET', KEYS[1], 'amnesty', '1') end
else
  redis.call('SADD', failed, member)
  if answer == 'denied' then redis.call('SADD', denied, member) end
  local failures = redis.call('SCARD', failed)
  redis.call('HSETNX', KEYS[1], 'since', text(plan.now))
  redis.call('HSET', KEYS[1], 'failures', failures)
  local enough = failures >= enoughFailures(plan)
  local lasts = plan.now - (tonumber(redis.call('HGET', KEYS[1], 'since')) or plan.now)
  if answer == 'refused' then
    after = 'unauthorized'
  elseif answer == 'denied' and redis.call('SCARD', denied) >= enoughFailures(plan) then
    -- One that is always refused says nothing about the key while others get no answer at all.
    after = 'unauthorized'
  elseif answer == 'unreachable' and enough and before == 'ok' and math.max(lasts, retryAfter or 0) >= ENDPOINT_GROUP.FAILING_FOR then
    after = 'unreachable'
  end
  if after ~= 'ok' then
    redis.call('HSET', KEYS[1], 'reason', ARGV[11])
    if retryAfter and after == 'unreachable' then
      local probeAt = plan.now + math.min(retryAfter, ENDPOINT_GROUP.LONGEST_PROBE)
      if probeAt > endpointGroup.probeAt then redis.call('HSET', KEYS[1], 'probeAt', text(probeAt)) end
    end
  end
  for _, members in ipairs({ failed, denied }) do
    if redis.call('SCARD', members) > 1000 then redis.call('SPOP', members, 500) end
  end
end
if after == before then return { before, after, paused } end

redis.call('HSET', KEYS[1], 'state', after)
if before == 'ok' then redis.call('HDEL', KEYS[1], 'probes') end

local function append(template, from)
  local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS[1], 'sequence', 1))
  return appendOperatorEvent(KEYS[2], template, { subject = ARGV[6], sequence = sequence, word = after, from = from })
end

-- An answer that refuses the key ends an outage: who was notified of it has to hear that it is over.
if before == 'unreachable' then append(ARGV[9], before) end
if after == 'unauthorized' then
  append(ARGV[8], before == 'unreachable' and 'reachable' or before)
elseif after == 'unreachable' then
  append(ARGV[7], before)
elseif before == 'unauthorized' then
  append(ARGV[10], before)
end
return { before, after, paused }
