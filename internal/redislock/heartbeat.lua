-- Keeps a place in the queue, and hands on a lock whose holder has died. It never queues.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 "ID ATTEMPT", 2 the lease
-- Reply {1, epoch, others}  the attempt holds the lock, with a full lease
--       {2, ttl}            it waits; ttl in milliseconds
--       0                   neither: it is not queued (any more)
local lease = ARGV[2]

local epoch = holds(k, id, attempt)
if epoch then
  call('PEXPIRE', k.lock, lease)
  return held(k, epoch)
end
if waiter(k, id) ~= attempt then return 0 end
local now, text = clock()
local place = call('ZSCORE', k.queue, id)
if not place then -- the queue was lost, and the arrival with it
  leave(k, id)
  return 0
end
note(k, id, attempt, lease, text)
if tonumber(place) > now then call('ZADD', k.queue, now, id) end -- it is from before the clock was set back
prolong(k, lease)
if not holder(k) then
  local who, given = grant(k, name, id, '', 0, now, text)
  if who == id then return held(k, given) end
end
return waits(k)
