--[[
  Ends the tracking of a subject that a page showed finished.

  KEYS
    plan     hash  clock of the plan (include/plan.lua)
    subject  hash  snapshot
    claims   hash  subscription key -> claim
    wanted   hash  subscription key -> time from which a subscription names it (ms)
    counts   hash  "<kind>|<status>" -> number of tracked subjects

  ARGV
    subject  text    subject id
    atMs     text?   time of the plan, ms; none for Redis time
    commit   number  commit of the snapshot that is finished

  returns flag
    False where tracking goes on: the snapshot has changed, a poll is under way or requested, or there is a claim that no page
    serves or that waits for its first answer.
]]
-- @include plan
-- @include shorten
-- @include open-transfers
-- @include claims
-- @include confirmed-time
-- @include ended
-- @include tracking
local plan = openPlan(KEYS.plan, ARGV.atMs)
local subject = ARGV.subject
if redis.call('HGET', KEYS.subject, 'commit') ~= ARGV.commit then return 0 end
local item = getItem(plan, subject)
if not item or item.lane == 'requested' or isClaimed(plan, subject) then return 0 end
if not isServedByPages(KEYS.claims) then return 0 end
finish(plan, subject, { subject = KEYS.subject, claims = KEYS.claims, counts = KEYS.counts }, false)
return 1
