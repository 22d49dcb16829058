--[[
  Takes the feed of checks a step along the event log: what the entries state becomes checks, and the cursor moves, in one
  step. Only the process that holds the lease may, and only from where the cursor stands.

  A check of the same statement stays as it is, and one of a later event too. Any other is replaced, whether it waits or has
  ended: the statement is a new one. A log that proved a payment by another transaction may prove others then; one of the
  same transaction is held until the check ends without it. What is stated no more, or on a chain that is not checked, has no
  print from then on: it lets its logs go and waits, and a statement of it begins anew.

  KEYS
    checksCursor  string  "<name of the log>|<entry>"
    checksLease   string  fencing token of the feed
    checks        keys    base of the keys of checks (include/check.lua)

  ARGV
    fence     text     fencing token
    from      text     the cursor as it was read; "" where there was none
    to        text     the cursor after this step
    payments  ...json  { id, chain, tx, print, sequence, fields: list of field, value, ... }, in the order of the log;
                       of a payment that is not stated, or is on a chain that is not checked, { id, print: "" for none,
                       sequence }

  returns
    isDone  flag    false when another process feeds now
    begun   number  how many checks began
]]
-- @include check
local statements = {}
for index = 1, #ARGV.payments do statements[#statements + 1] = cjson.decode(ARGV.payments[index]) end
if redis.call('GET', KEYS.checksLease) ~= ARGV.fence then return { 0, 0 } end
if (redis.call('GET', KEYS.checksCursor) or '') ~= ARGV.from then return { 0, 0 } end

local base, now, begun = KEYS.checks, checkText(checkNow()), 0
for _, stated in ipairs(statements) do
  local key = base .. ':of:' .. stated.id
  local found = redis.call('HMGET', key, 'state', 'chain', 'print', 'sequence', 'tx')
  local state, chain, print, sequence, tx = unpack(found)
  local isLater = (tonumber(sequence or '0') or 0) >= stated.sequence
  if not stated.fields then
    if state and print ~= '' and print ~= stated.print and not isLater then
      redis.call('HSET', key, 'print', '')
      if tx then releaseLogs(base, stated.id, tx, {}) end
      reopenCheck(base, stated.id)
    end
  elseif not state or not (print == stated.print or isLater) then
    if state then
      if tx and tx ~= stated.tx then releaseLogs(base, stated.id, tx, {}) end
      unlistCheck(base, stated.id, chain or '', state)
      redis.call('DEL', key)
    end
    redis.call(
      'HSET', key,
      'state', 'waiting', 'chain', stated.chain, 'print', stated.print, 'sequence', checkText(stated.sequence),
      'tx', stated.tx, 'asked', '0', 'because', '', 'claim', '', unpack(stated.fields)
    )
    -- What was reported of it before it was taken back stands no more.
    if print == '' then redis.call('HSET', key, 'since', now) end
    redis.call('ZADD', base .. ':due:' .. stated.chain, now, stated.id)
    redis.call('ZADD', base .. ':waiting:' .. stated.chain, now, stated.id)
    countCheck(base, stated.chain, 'waiting', 1)
    begun = begun + 1
  end
end
redis.call('SET', KEYS.checksCursor, ARGV.to)
return { 1, begun }
