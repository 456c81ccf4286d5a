-- Ends an attempt, whatever became of it: it leaves the queue, releases
-- the lock if it got it, and is ignored if it arrives later.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 "ID ATTEMPT", 2 the lease
-- Reply 0
local lease, past = ARGV[2], tonumber(attempt)

local cancelled = call('HGET', k.waiters, 'c:' .. id)
if not cancelled or tonumber(cancelled) < past then
  -- Marks of Lockers that are gone must not pile up. One that is missed costs a lease at most.
  if call('HLEN', k.waiters) > 2 * call('ZCARD', k.queue) + 100 then
    for _, field in ipairs(call('HKEYS', k.waiters)) do
      if not call('ZSCORE', k.queue, field) then call('HDEL', k.waiters, field) end
    end
  end
  call('HSET', k.waiters, 'c:' .. id, attempt)
  if call('PTTL', k.waiters) < tonumber(keep(lease)) then call('PEXPIRE', k.waiters, keep(lease)) end
end
if waiter(k, id) == attempt then leave(k, id) end
if holds(k, id, attempt) then grant(k, name, '', id, past, clock()) end
return 0
