--[[
  Has what is polled with spare budget polled as usual again, where somebody in the config wants it or nobody does any more:
  a part of what waits in one place.

  KEYS[1] plan       hash    clock of the plan (include/plan.lua)
  KEYS[2] wanted     hash    root -> since when a subscription names it (ms)

  ARGV[1] the plan's time, ms; "" for that of Redis
  ARGV[2] prefix of the keys of claims
  ARGV[3] the place: ":spare" or ":spareWallets"
  ARGV[4] how many of it are left out, for they were read before
  ARGV[5] how many to read

  Returns { how many were recalled, how many of them have been read and stay; "" at the end }.
]]
-- @include plan
-- @include claims
-- @include suspended
local plan = openPlan(KEYS[1], ARGV[1])
local members = redis.call('ZRANGE', plan.key .. ARGV[3], ARGV[4], ARGV[4] + ARGV[5] - 1)
local recalled = 0
for _, member in ipairs(members) do
  if not isOut(ARGV[2] .. subjectOf(member), KEYS[2]) then
    recall(plan, member)
    recalled = recalled + 1
  end
end
local isEnd = #members < tonumber(ARGV[5])
return { tostring(recalled), isEnd and '' or string.format('%.0f', ARGV[4] + #members - recalled) }
