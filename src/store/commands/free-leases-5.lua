--[[
  Frees the leases and the turn that processes hold which are gone. Their fencing tokens become void with it.

  KEYS
    relayLease     string  fencing token of the holder: `<number> <process>`
    checksLease    string  as relayLease
    booksLease     string  as relayLease
    configLease    string  as relayLease
    directoryTurn  string  `turn <process>` while that process reads the lists

  ARGV
    processes  ...text

  returns number
    Number of freed leases.
]]
local isGone = {}
for index = 1, #ARGV.processes do isGone[ARGV.processes[index]] = true end
local count = 0
for _, lease in ipairs({ KEYS.relayLease, KEYS.checksLease, KEYS.booksLease, KEYS.configLease, KEYS.directoryTurn }) do
  local process = string.match(redis.call('GET', lease) or '', ' (.*)$')
  if process and isGone[process] then count = count + redis.call('DEL', lease) end
end
return count
