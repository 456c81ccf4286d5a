-- Releases a lock, grants it to the next waiter, and queues the caller again if another of its goroutines
-- waits. release_unwanted.lua is its beginning.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 "ID ATTEMPT", which holds; if there is a next attempt:
--       2 that one, 3 its lease, 4 how long its waiter has waited, in microseconds
-- Reply 0                   not the caller's (any more), nothing changed
--       {1, epoch, others}  released, and held again under the next attempt
--       2                   released, and nobody waits
--       {2, ttl}            released; if there is a next attempt, it is queued
local again, lease, waited = ARGV[2], ARGV[3], ARGV[4]

local now, text = clock()
if again and over(k, id, again) then again = nil end -- it was cancelled before this arrived
if again then join(k, id, again, lease, waited, now, text) end
local who, epoch, ttl = grant(k, name, again and id or '', id, tonumber(attempt), now, text)
if again and who == id then return held(k, epoch) end
return { 2, ttl or 0 }
