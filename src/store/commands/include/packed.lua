-- Returns the bytes of a text when it is unpacked (store/packed.ts).
local function bytesOf(text) return tonumber(string.match(text, '^~(%d+)~')) or #text end
