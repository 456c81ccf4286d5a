-- Takes an attempt back, whatever became of it: it leaves the queue, gives back
-- the lock if it got it, and is ignored if it arrives later.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 the attempt, 3 the lock's name,
--       4 "1" where PUBLISH counts all receivers
-- Reply 1
local k = lockAt(1)
local id, attempt, name, trusted = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local mine = waiter(k, id)
if mine and mine.attempt == attempt then leave(k, id) end
local cancelled = redis.call('HGET', k.waiters, 'c:' .. id)
if not cancelled or tonumber(cancelled) < tonumber(attempt) then
  redis.call('HSET', k.waiters, 'c:' .. id, attempt)
  redis.call('PEXPIRE', k.waiters, LINGER)
end
if holds(k, id, attempt) then
  redis.call('DEL', k.lock)
  grant(k, name, id, trusted, clock())
end
return 1
