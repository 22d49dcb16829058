--[[
  Ends a check of which no event is reported. One of which an event is reported ends with it (see commit-10.lua).

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] JSON, as the last argument of commit-10.lua

  Returns "ended", "gone" or "taken" (see include/check.lua).
]]
-- @include confirmed-time
-- @include check
local ending = cjson.decode(ARGV[1])
local may = mayEndCheck(ending)
if may ~= 'open' then return may end
endCheck(ending)
return 'ended'
