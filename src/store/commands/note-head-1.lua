--[[
  Has checks be due that wait until the final head of an endpoint has reached their block.

  KEYS[1] checks     base of the keys of checks (include/check.lua)

  ARGV[1] chain
  ARGV[2] name of the endpoint
  ARGV[3] number of its newest final block

  Returns 1.
]]
-- @include check
makeFirstDue(KEYS[1], ARGV[1], KEYS[1] .. ':until:' .. ARGV[1] .. '|' .. ARGV[2], ARGV[3], MOST_DUE)
return 1
