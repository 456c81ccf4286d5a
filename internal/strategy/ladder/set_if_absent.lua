-- Takes a lock if nobody has it. The recipe says SETEX; PSETEX is the same
-- with a lease in milliseconds.
-- KEYS[1]  the lock
-- ARGV[1]  the owner's value
-- ARGV[2]  the lease, in milliseconds
-- Reply    1 taken; 0 somebody has it
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1])
return 1
