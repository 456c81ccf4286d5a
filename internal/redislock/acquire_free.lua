-- What acquire.lua comes to where nobody has the lock, waits for it, or has cancelled an attempt. It stands
-- in front of the rest, which then costs nothing.
if call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) == 0 then
  return (take(KEYS[1], KEYS[4], ARGV[1], ARGV[2], ARGV[3], clock()))
end

