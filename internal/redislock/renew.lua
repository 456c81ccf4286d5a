-- Gives a hold a full lease again. It has one key, so that it works while a Cluster moves the slot.
-- KEYS  lock
-- ARGV  1 "ID ATTEMPT", 2 the lease
-- Reply now       held; now is the server's clock in microseconds
--       {0, now}  not the caller's (any more), nothing changed
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local holder, mine = redis.call('GET', KEYS[1]), ARGV[1] .. ' '
if not holder or string.sub(holder, 1, #mine) ~= mine then return { 0, now } end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return now
