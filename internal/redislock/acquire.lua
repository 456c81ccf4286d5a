-- Takes a lock, or queues for it. acquire_free.lua is its beginning.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 "ID ATTEMPT", 2 the lease,
--       3 how long the waiter has waited, in microseconds; left out not to queue when it is taken
-- Reply epoch              held, and nobody waits
--       {1, epoch, others}  held; others wait
--       {2, ttl}            taken, and queued if asked to; ttl in milliseconds
--       0                   ignored: a newer attempt is known, or this one was cancelled
local lease, waited = ARGV[2], ARGV[3]

local past, mine = over(k, id, attempt)
if past then return 0 end
local now, text = clock()
local taken = there == 2 or holder(k)
local head = not taken and call('ZRANGE', k.queue, 0, 0)[1]
local winner, epoch
if not taken and (not head or head == id) then
  winner, epoch = id, take(k.lock, k.epoch, ARGV[1], lease, now, text)
  if mine then leave(k, id) end
else
  if not waited then
    if mine then leave(k, id) end -- an older attempt's place
  elseif join(k, id, attempt, lease, waited, now, text) and taken then
    contend(k, name)
  end
  if not taken then
    -- Others were here first: one of them gets it, and the caller only if all of them are gone.
    winner, epoch = grant(k, name, id, '', 0, now, text)
    if not winner then winner, epoch = id, take(k.lock, k.epoch, ARGV[1], lease, now, text) end
  end
end
if winner == id then return held(k, epoch) end
return waits(k)
