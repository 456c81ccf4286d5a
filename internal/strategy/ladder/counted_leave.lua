-- Leaves a lock once, and frees it with the last time.
-- KEYS[1]  the lock, a hash of owner -> count
-- ARGV[1]  the owner
-- ARGV[2]  the lease, in milliseconds
-- Reply    the entries that are left, 0 when the lock was freed; -1 not the
--          caller's (any more), nothing changed
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return -1
end
local left = redis.call('HINCRBY', KEYS[1], ARGV[1], -1)
if left > 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
end
return left
