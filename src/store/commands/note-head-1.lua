--[[
  Makes checks due whose block the final head of an endpoint has reached.

  KEYS
    checks  keys  base of the keys of checks (include/check.lua)

  ARGV
    chain     text
    endpoint  text  name of the endpoint
    block     text  number of its newest final block

  returns flag
]]
-- @include check
makeFirstDue(KEYS.checks, ARGV.chain, KEYS.checks .. ':until:' .. ARGV.chain .. '|' .. ARGV.endpoint, ARGV.block, MOST_DUE)
return 1
