--[[
  Has what is polled with spare budget polled as usual again, where somebody in the config wants it or nobody does any more:
  a part of what waits in one place.

  KEYS
    plan    hash  clock of the plan (include/plan.lua)
    wanted  hash  root -> since when a subscription names it (ms)

  ARGV
    atMs          text?   the plan's time, ms; none for that of Redis
    claimsPrefix  text    prefix of the keys of claims
    place         ":spare" | ":spareWallets"
    from          text    how many of it are left out, for they were read before
    count         number  how many to read

  returns
    recalled  number
    next      text    how many have been read and stay; "" at the end
]]
-- @include plan
-- @include claims
-- @include suspended
local plan = openPlan(KEYS.plan, ARGV.atMs)
local members = redis.call('ZRANGE', plan.key .. ARGV.place, ARGV.from, ARGV.from + ARGV.count - 1)
local recalled = 0
for _, member in ipairs(members) do
  if not isOut(ARGV.claimsPrefix .. subjectOf(member), KEYS.wanted) then
    recall(plan, member)
    recalled = recalled + 1
  end
end
local isEnd = #members < tonumber(ARGV.count)
return { tostring(recalled), isEnd and '' or string.format('%.0f', ARGV.from + #members - recalled) }
