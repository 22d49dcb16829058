--[[
  Declares processes gone that were proven to be. One that has sent a heartbeat since is not.

  KEYS
    senders  zset  process -> time until which it counts as alive, ms; 0 once it is declared gone

  ARGV
    processes  ...(process text, lease text)  processes, and that time as it was when the proof was made

  returns list of text
    Those that are gone.
]]
local gone = {}
for index = 1, #ARGV.processes do
  local process = ARGV.processes[index].process
  if redis.call('ZSCORE', KEYS.senders, process) == ARGV.processes[index].lease then
    redis.call('ZADD', KEYS.senders, 0, process)
    gone[#gone + 1] = process
  end
end
return gone
