-- Deletes a lock if it is still the caller's.
-- KEYS[1]  the lock
-- ARGV[1]  the owner's value
-- Reply    1 deleted; 0 not the caller's (any more), nothing changed
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
