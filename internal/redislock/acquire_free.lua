-- The beginning of acquire: takes a lock that nobody has, waits for, or has cancelled an attempt at.
-- Most locks are like that most of the time. It comes before common.lua, because making the functions
-- there takes as long as this does.
local there = call('EXISTS', KEYS[1], KEYS[3])
if there == 0 then
  return (take(KEYS[1], KEYS[4], ARGV[1], ARGV[2], clock()))
end

