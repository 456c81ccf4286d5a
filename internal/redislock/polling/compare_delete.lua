-- Deletes a plain lock, if it still has the caller's value.
-- KEYS  1 the lock
-- ARGV  1 the value
-- Reply 1 deleted; 0 not the caller's (any more), nothing changed
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
