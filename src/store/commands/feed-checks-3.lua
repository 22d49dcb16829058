--[[
  Takes the feed of checks a step along the event log: what the entries state becomes checks, and the cursor moves, in one
  step. Only the process that holds the lease may, and only from where the cursor stands.

  KEYS[1] cursor     string  "<name of the log>|<entry>"
  KEYS[2] lease      string  fencing token of the feed
  KEYS[3] checks     base of the keys of checks (include/check.lua)

  ARGV[1] fencing token
  ARGV[2] the cursor as it was read; "" where there was none
  ARGV[3] the cursor after this step
  ARGV[4...] JSON { id, chain, tx, print, sequence, fields: list of field, value, ... }, in the order of the log; of a payment
             that is not stated, or is on a chain that is not checked, { id, print: "" for none, sequence }

  A check of the same statement stays as it is, and one of a later event too. Any other is replaced, whether it waits or has
  ended: the statement is a new one. A log that proved a payment by another transaction may prove others then; one of the
  same transaction is held until the check ends without it. What is stated no more, or on a chain that is not checked, has no
  print from then on: it lets its logs go and waits, and a statement of it begins anew.

  Returns { 1 } and the number of checks that began, or { 0, 0 } when another process feeds now.
]]
-- @include check
local statements = {}
for index = 4, #ARGV do statements[#statements + 1] = cjson.decode(ARGV[index]) end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return { 0, 0 } end
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[2] then return { 0, 0 } end

local base, now, begun = KEYS[3], checkText(checkNow()), 0
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
redis.call('SET', KEYS[1], ARGV[3])
return { 1, begun }
