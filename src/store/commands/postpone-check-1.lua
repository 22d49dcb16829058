--[[
  Lets a claimed check wait until it is asked again. One that waits for the logs of others lets go of its own, as none of them
  would do: two that want each other's would wait for each other else.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] id of the check
  ARGV[2] token under which it was claimed
  ARGV[3] ms until it is asked again
  ARGV[4] 1 where its endpoints were asked, else 0
  ARGV[5] 1 where it waits for the logs of others, else 0
  ARGV[6...] field, value: what is noted

  Returns 1, or 0 when the claim is lost: then nothing is noted.
]]
-- @include check
local key = KEYS[1] .. ':of:' .. ARGV[1]
local state, claim, chain, tx = unpack(redis.call('HMGET', key, 'state', 'claim', 'chain', 'tx'))
if state ~= 'waiting' or claim ~= ARGV[2] then return 0 end
local now = checkNow()
redis.call('HSET', key, 'claim', '', 'claims', '0')
if ARGV[4] == '1' then
  redis.call('HINCRBY', key, 'asked', 1)
  redis.call('HSET', key, 'askedAt', checkText(now))
end
if ARGV[5] == '1' then releaseLogs(KEYS[1], ARGV[1], tx, {}) end
for index = 6, #ARGV, 2 do redis.call('HSET', key, ARGV[index], ARGV[index + 1]) end
redis.call('ZADD', KEYS[1] .. ':due:' .. chain, checkText(now + tonumber(ARGV[3])), ARGV[1])
return 1
