--[[
  Ends the tracking of a subject that a page showed finished.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] subject    hash    snapshot
  KEYS[3] claims     hash    root -> claim
  KEYS[4] wanted     hash    root -> since when a subscription names it (ms)
  KEYS[5] counts     hash    "<kind>|<status>" -> number of tracked subjects

  ARGV[1] subject id
  ARGV[2] the plan's time, ms; "" for that of Redis
  ARGV[3] commit of the snapshot by which it was found finished

  Returns 1; 0 where that is not for the caller to say: the snapshot has changed, a poll is under way or requested, or
  there is a claim that no page serves or that waits for its first answer.
]]
-- @include plan
-- @include open-transfers
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include tracking
local plan = openPlan(KEYS[1], ARGV[2])
local subject = ARGV[1]
if redis.call('HGET', KEYS[2], 'commit') ~= ARGV[3] then return 0 end
local item = getItem(plan, subject)
if not item or item.lane == 'asked' or isClaimed(plan, subject) then return 0 end
if not isServedByPages(KEYS[3]) then return 0 end
finish(plan, subject, { subject = KEYS[2], claims = KEYS[3], counts = KEYS[5] }, false)
return 1
