-- Gives a lock back, hands it to the next waiter, and queues the caller anew if
-- it has another goroutine that waits.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 the attempt that holds, 3 the lease, 4 the lock's name,
--       5 the next attempt, or "", 6 "1" where PUBLISH counts all receivers
-- Reply {0}                 not the caller's (any more), nothing changed
--       {1, epoch, others}  released, and held again under the next attempt
--       {2, ttl}            released; if there is a next attempt, it is queued
local k = lockAt(1)
local id, attempt, lease, name, again, trusted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if not holds(k, id, attempt) then return { 0 } end
local now = clock()
redis.call('DEL', k.lock)
if again ~= '' then join(k, id, again, lease, now) end
grant(k, name, id, trusted, now)
if again ~= '' and holds(k, id, again) then return held(k) end
return { 2, redis.call('PTTL', k.lock) }
