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
  -- Marks of Lockers that are gone must not pile up. One that is missed costs a lease at most.
  if redis.call('HLEN', k.waiters) > 2 * redis.call('ZCARD', k.queue) + 100 then
    for _, field in ipairs(redis.call('HKEYS', k.waiters)) do
      if string.sub(field, 1, 2) == 'c:' then redis.call('HDEL', k.waiters, field) end
    end
  end
  redis.call('HSET', k.waiters, 'c:' .. id, attempt)
  redis.call('PEXPIRE', k.waiters, LINGER)
end
if holds(k, id, attempt) then
  redis.call('DEL', k.lock)
  grant(k, name, id, trusted, clock())
end
return 1
