--[[
  Ends a check without an event. A check with an event ends in the commit of that event (see commit-12.lua).

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    ending  json  as `check` of commit-12.lua

  returns "ended" | "gone" | "used"
    See include/check.lua.
]]
-- @include confirmed-time
-- @include check
local ending = cjson.decode(ARGV.ending)
local may = mayEndCheck(ending)
if may ~= 'open' then return may end
endCheck(ending)
return 'ended'
