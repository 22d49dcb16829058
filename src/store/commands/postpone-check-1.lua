--[[
  Lets a claimed check wait until it is asked again.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] id of the check
  ARGV[2] token under which it was claimed
  ARGV[3] ms until it is asked again
  ARGV[4] 1 where its endpoints were asked, else 0
  ARGV[5...] field, value: what is noted

  Returns 1, or 0 when the claim is lost: then nothing is noted.
]]
-- @include check
local key = KEYS[1] .. ':of:' .. ARGV[1]
local state, claim, chain = unpack(redis.call('HMGET', key, 'state', 'claim', 'chain'))
if state ~= 'waiting' or claim ~= ARGV[2] then return 0 end
local now = checkNow()
redis.call('HSET', key, 'claim', '', 'claims', '0')
if ARGV[4] == '1' then
  redis.call('HINCRBY', key, 'asked', 1)
  redis.call('HSET', key, 'askedAt', checkText(now))
end
for index = 5, #ARGV, 2 do redis.call('HSET', key, ARGV[index], ARGV[index + 1]) end
redis.call('ZADD', KEYS[1] .. ':due:' .. chain, checkText(now + tonumber(ARGV[3])), ARGV[1])
return 1
