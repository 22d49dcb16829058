--[[
  Returns members from spare budget to usual polls, where the config wants them or no claim wants them any more: a part of
  one place.

  KEYS
    plan    hash  clock of the plan (include/plan.lua)
    wanted  hash  subscription key -> time from which a subscription names it (ms)

  ARGV
    atMs          text?   time of the plan, ms; none for Redis time
    claimsPrefix  text    prefix of the keys of claims
    place         ":spare" | ":spareWallets"
    from          text    number of members to skip: they were read before
    count         number  number of members to read

  returns
    recalled  number
    next      text    number of members that were read and stay; "" at the end
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
