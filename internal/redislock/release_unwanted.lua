-- Releases a lock that nobody waits for.
-- KEYS  lock, queue
-- ARGV  1 "ID ATTEMPT"
-- Reply 0  not the caller's (any more), nothing changed
--       2  released
--       3  nothing was done: somebody waits
local holder = redis.call('GET', KEYS[1])
if not holder or string.sub(holder, 1, #ARGV[1] + 1) ~= ARGV[1] .. ' ' then return 0 end
if redis.call('EXISTS', KEYS[2]) == 1 then return 3 end
redis.call('DEL', KEYS[1])
return 2
