-- Takes a lock, or queues for it. Where nobody else seems to want it, acquire_free.lua is tried first.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 its attempt, 3 the lease, 4 the lock's name,
--       5 how long the waiter has waited, in microseconds, or "" not to queue when it is taken, 6 "1" where PUBLISH counts all receivers
-- Reply {1, epoch, others}  held
--       {2, ttl}            taken, and queued if asked to; ttl in milliseconds
--       3                   ignored: a newer attempt is known, or this one was cancelled
local k = lockAt(1)
local id, attempt, lease, name, waited, trusted = unpack(ARGV)

local owner, hold, epoch = holder(k)
if owner == id and hold == attempt then
  call('PEXPIRE', k.lock, lease)
  return held(k, tonumber(epoch))
end
local past, mine = over(k, id, attempt)
if past then return 3 end
if mine and waited == '' then leave(k, id) end -- an older attempt's place

local now, nowText = clock()
if not owner then
  local head = call('ZRANGE', k.queue, 0, 0)[1]
  if not head or head == id then
    if head then leave(k, id) end
    return held(k, (take(k.lock, k.epoch, id .. ' ' .. attempt, lease, now, nowText)))
  end
end
if waited ~= '' and join(k, id, attempt, lease, now, now - waited) and owner then contend(owner, name) end
if not owner then
  -- Others were here first: one of them gets it, and the caller only if all of
  -- them are gone.
  grant(k, name, id, trusted, now, nowText)
  local mineNow = holds(k, id, attempt)
  if not mineNow and call('EXISTS', k.lock) == 0 then mineNow = take(k.lock, k.epoch, id .. ' ' .. attempt, lease, now, nowText) end
  if mineNow then return held(k, mineNow) end
end
return { 2, call('PTTL', k.lock) }
