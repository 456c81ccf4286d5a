-- Takes a lock that nobody has, waits for, or has cancelled an attempt at. Most locks are like that most of the time:
-- what the rest of acquire.lua would need is left out, because each argument takes time.
-- KEYS  lock, waiters, epoch
-- ARGV  1 "ID ATTEMPT", 2 the lease
-- Reply EPOCH  held, and nobody else waits
--       3      nothing was done: it is not like that
if call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  return (take(KEYS[1], KEYS[3], ARGV[1], ARGV[2], clock()))
end
return 3
