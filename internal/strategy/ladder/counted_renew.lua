-- Gives a lock a full lease again, if it is still the caller's.
-- KEYS[1]  the lock, a hash of owner -> count
-- ARGV[1]  the owner
-- ARGV[2]  the lease, in milliseconds
-- Reply    1 renewed; 0 not the caller's (any more), nothing changed
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
