--[[
  Runs commands that write, in one step; refused once another process has acquired the lease.

  KEYS
    lease  string  fencing token of the holder
    fence  string  the newest fencing token

  ARGV
    token  text     fencing token of the caller
    words  ...text  of all commands, each after the number of its words

  returns text
    Reply of the last command; "" where it was refused.
]]
-- @include fence
if isFenced(KEYS.lease, KEYS.fence, ARGV.token) then return '' end
local at, reply = 1, 0
while at <= #ARGV.words do
  local command, size = {}, tonumber(ARGV.words[at])
  for place = 1, size do
    local word = at + place
    command[place] = ARGV.words[word]
  end
  reply = redis.call(unpack(command))
  at = at + size + 1
end
return tostring(reply)
