-- Takes an attempt back, whatever became of it: it leaves the queue, gives back
-- the lock if it got it, and is ignored if it arrives later.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 the attempt, 3 the lock's name,
--       4 "1" where PUBLISH counts all receivers
-- Reply 1
local k = lockAt(1)
local id, attempt, name, trusted = unpack(ARGV)

local mine = waiter(k, id)
if mine and mine.attempt == attempt then leave(k, id) end
local cancelled = call('HGET', k.waiters, 'c:' .. id)
if not cancelled or tonumber(cancelled) < tonumber(attempt) then
  -- Marks of Lockers that are gone must not pile up. One that is missed costs a lease at most.
  if call('HLEN', k.waiters) > 2 * call('ZCARD', k.queue) + 100 then
    for _, field in ipairs(call('HKEYS', k.waiters)) do
      if string.sub(field, 1, 2) == 'c:' then call('HDEL', k.waiters, field) end
    end
  end
  call('HSET', k.waiters, 'c:' .. id, attempt)
  call('PEXPIRE', k.waiters, LINGER)
end
if holds(k, id, attempt) then grant(k, name, '', trusted, clock()) end
return 1
