--[[
  Ends a check of which no event is reported. One of which an event is reported ends with it (see commit-10.lua).

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    ending  json  as `check` of commit-10.lua

  returns "ended" | "gone" | "taken"
    See include/check.lua.
]]
-- @include confirmed-time
-- @include check
local ending = cjson.decode(ARGV.ending)
local may = mayEndCheck(ending)
if may ~= 'open' then return may end
endCheck(ending)
return 'ended'
