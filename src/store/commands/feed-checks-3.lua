--[[
  Moves the feed of checks along the event log: the statements of the entries become checks, and the cursor moves, in one
  step. Only the process that holds the lease may, and only from the current cursor.

  A check of the same statement, or of a later event, stays as it is. Any other check is replaced, also an ended one: its
  statement is new. A log that proved a payment by another transaction may then prove others; a log of the same transaction is
  held until the check ends without it. A payment that is no longer stated, or is on a chain that is not checked, has no print
  from then on: its check releases its logs and waits, and a new statement begins a new check.

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
    begun   number  number of checks that began
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
      'tx', stated.tx, 'polls', '0', 'because', '', 'claim', '', unpack(stated.fields)
    )
    -- Its reports from before it was withdrawn no longer count.
    if print == '' then redis.call('HSET', key, 'since', now) end
    redis.call('ZADD', base .. ':due:' .. stated.chain, now, stated.id)
    redis.call('ZADD', base .. ':waiting:' .. stated.chain, now, stated.id)
    countCheck(base, stated.chain, 'waiting', 1)
    begun = begun + 1
  end
end
redis.call('SET', KEYS.checksCursor, ARGV.to)
return { 1, begun }
