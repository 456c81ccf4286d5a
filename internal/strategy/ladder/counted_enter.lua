-- Takes a lock, or enters it once more.
-- KEYS[1]  the lock, a hash of owner -> count
-- ARGV[1]  the owner
-- ARGV[2]  the lease, in milliseconds
-- Reply    1 entered; 0 somebody else has it
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
