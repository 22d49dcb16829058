--[[
  Records the result of one request in the state of the endpoint group (see include/endpoint-group.lua), and appends the
  operator's event when the state changes, in one step.

  KEYS
    endpointGroup  hash    state of the endpoint group
    events         stream  the event log
    plan           hash    clock of the endpoint group's plan (include/plan.lua)

  ARGV
    answer        "ok" | "unreachable" | "denied" | "refused" | "throttled"
                           unreachable: no usable answer; denied: refused, perhaps only for this subject;
                           refused: the key is refused; throttled: 429
    member        text     member that was requested
    sentAtMs      number   time of the plan at which the request was sent, ms
    retryAfterMs  number?  Retry-After, ms
    atMs          text?    time of the plan, ms; none for Redis time
    subject       text     subject id of the endpoint group
    unreachable   text     event JSON for the move to unreachable (with %SEQ%, %EPOCH%, %ID%, %FROM% to be filled in)
    unauthorized  text     event JSON for the move to unauthorized
    reachable     text     event JSON for the recovery from unreachable
    authorized    text     event JSON for the recovery from unauthorized
    reason        text     reason in one sentence

  returns
    before   text     state before
    after    text     state after
    pauseMs  number?  length of a pause that began now
]]
-- @include plan
-- @include endpoint-group
-- @include operator-event
local plan = openPlan(KEYS.plan, ARGV.atMs)
local endpointGroup = openEndpointGroup(KEYS.endpointGroup, plan)
local answer, member, sentAt = ARGV.answer, ARGV.member, tonumber(ARGV.sentAtMs)
local retryAfter = tonumber(ARGV.retryAfterMs)
local failed, denied = KEYS.endpointGroup .. ':failed', KEYS.endpointGroup .. ':denied'
local before, after = endpointGroup.state, endpointGroup.state
local paused = ''

if answer == 'throttled' then
  -- A member that is answered 429 again and again while others are not backs off alone: the others do not wait.
  local throttled = KEYS.endpointGroup .. ':throttled'
  local isThrottled = redis.call('ZSCORE', throttled, member)
  redis.call('ZREMRANGEBYSCORE', throttled, '-inf', text(plan.now - ENDPOINT_GROUP.THROTTLED_FOR))
  redis.call('ZADD', throttled, text(plan.now), member)
  local isAlone = redis.call('ZCARD', throttled) < enoughFailures(plan)
  if isThrottled and isAlone and endpointGroup.pauses == 0 and sentAt > endpointGroup.pausedAt then return { before, after, paused } end
  local requestedMs = retryAfter and math.min(retryAfter, ENDPOINT_GROUP.LONGEST_PAUSE)
  if sentAt <= endpointGroup.pausedAt then
    -- The request was sent before the pause began, which is for this one as well.
    if requestedMs and plan.now + requestedMs > endpointGroup.pausedUntil then
      redis.call('HSET', KEYS.endpointGroup, 'pausedUntil', text(plan.now + requestedMs))
    end
  else
    local pauseMs = requestedMs or math.min(ENDPOINT_GROUP.LONGEST_STEP, ENDPOINT_GROUP.PAUSE * 2 ^ math.min(endpointGroup.pauses, 10))
    pauseMs = math.max(1, pauseMs)
    redis.call(
      'HSET', KEYS.endpointGroup, 'pausedUntil', text(plan.now + pauseMs), 'pausedAt', text(plan.now), 'pauses', endpointGroup.pauses + 1,
      'probing', '1', 'probe', '', 'pace', text(math.max(ENDPOINT_GROUP.LEAST_PACE, endpointGroup.pace / 2)), 'paceAt', text(plan.now + pauseMs)
    )
    paused = text(pauseMs)
  end
  return { before, after, paused }
end

-- Any answer but 429 ends the probing after a pause; a request from before the pause has no meaning for it.
if sentAt > endpointGroup.pausedAt then redis.call('HDEL', KEYS.endpointGroup, 'probing', 'pauses') end

if answer == 'ok' then
  local lasted = plan.now - number(redis.call('HGET', KEYS.endpointGroup, 'since'), plan.now)
  redis.call('HDEL', KEYS.endpointGroup, 'state', 'failures', 'since', 'reason', 'probes', 'probeAt', 'probe')
  redis.call('DEL', failed, denied)
  after = 'ok'
  if before ~= 'ok' and lasted >= ENDPOINT_GROUP.FAILING_FOR then redis.call('HSET', KEYS.endpointGroup, 'amnesty', '1') end
else
  redis.call('SADD', failed, member)
  if answer == 'denied' then redis.call('SADD', denied, member) end
  local failures = redis.call('SCARD', failed)
  redis.call('HSETNX', KEYS.endpointGroup, 'since', text(plan.now))
  redis.call('HSET', KEYS.endpointGroup, 'failures', failures)
  local enough = failures >= enoughFailures(plan)
  local lasts = plan.now - (tonumber(redis.call('HGET', KEYS.endpointGroup, 'since')) or plan.now)
  if answer == 'refused' then
    after = 'unauthorized'
  elseif answer == 'denied' and redis.call('SCARD', denied) >= enoughFailures(plan) then
    -- A member that is always refused has no meaning for the key while others get no answer at all.
    after = 'unauthorized'
  elseif answer == 'unreachable' and enough and before == 'ok' and math.max(lasts, retryAfter or 0) >= ENDPOINT_GROUP.FAILING_FOR then
    after = 'unreachable'
  end
  if after ~= 'ok' then
    redis.call('HSET', KEYS.endpointGroup, 'reason', ARGV.reason)
    if retryAfter and after == 'unreachable' then
      local probeAt = plan.now + math.min(retryAfter, ENDPOINT_GROUP.LONGEST_PROBE)
      if probeAt > endpointGroup.probeAt then redis.call('HSET', KEYS.endpointGroup, 'probeAt', text(probeAt)) end
    end
  end
  for _, members in ipairs({ failed, denied }) do
    if redis.call('SCARD', members) > 1000 then redis.call('SPOP', members, 500) end
  end
end
if after == before then return { before, after, paused } end

redis.call('HSET', KEYS.endpointGroup, 'state', after)
if before == 'ok' then redis.call('HDEL', KEYS.endpointGroup, 'probes') end

local function append(template, from)
  local sequence = string.format('%.0f', redis.call('HINCRBY', KEYS.endpointGroup, 'sequence', 1))
  return appendOperatorEvent(KEYS.events, template, { subject = ARGV.subject, sequence = sequence, word = after, from = from })
end

-- An answer that refuses the key ends an outage: receivers that were notified of the outage are notified of its end.
if before == 'unreachable' then append(ARGV.reachable, before) end
if after == 'unauthorized' then
  append(ARGV.unauthorized, before == 'unreachable' and 'reachable' or before)
elseif after == 'unreachable' then
  append(ARGV.unreachable, before)
elseif before == 'unauthorized' then
  append(ARGV.authorized, before)
end
return { before, after, paused }
