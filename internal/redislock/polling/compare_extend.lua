-- Gives a plain lock a full lease again, if it still has the caller's value.
-- KEYS  1 the lock
-- ARGV  1 the value, 2 the lease in milliseconds
-- Reply 1 extended; 0 not the caller's (any more), nothing changed
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
