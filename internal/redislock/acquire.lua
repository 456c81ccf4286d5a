-- Takes a lock, or queues for it.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 its attempt, 3 the lease, 4 the lock's name,
--       5 "1" to queue when it is taken, 6 "1" where PUBLISH counts all receivers
-- Reply EPOCH               held, and nobody else waits: see acquire_free.lua
--       {1, epoch, others}  held
--       {2, ttl}            taken, and queued if asked to; ttl in milliseconds
--       {2, ttl, 0}         likewise, and the holder was to hear of it, but does not listen
--       3                   ignored: a newer attempt is known, or this one was cancelled
local k = lockAt(1)
local id, attempt, lease, name, queueUp, trusted = unpack(ARGV)

local holder = call('HMGET', k.lock, 'owner', 'hold', 'epoch')
if holder[1] == id and holder[2] == attempt then
  call('PEXPIRE', k.lock, lease)
  return held(k, tonumber(holder[3]))
end
local past, mine = over(k, id, attempt)
if past then return 3 end
if mine and queueUp ~= '1' then leave(k, id) end -- an older attempt's place

local free, now, nowText = not holder[1], clock()
if free then
  local head = call('ZRANGE', k.queue, 0, 0)[1]
  if not head or head == id then
    if head then leave(k, id) end
    return held(k, (take(k.lock, k.epoch, id, attempt, lease, now, nowText)))
  end
end
if queueUp == '1' and join(k, id, attempt, lease, now) then
  return { 2, call('PTTL', k.lock), contend(holder[1], name, trusted) }
end
if free then
  -- Others were here first: one of them gets it, and the caller only if all of
  -- them are gone.
  grant(k, name, id, trusted, now, nowText)
  local epoch = holds(k, id, attempt)
  if not epoch and call('EXISTS', k.lock) == 0 then epoch = take(k.lock, k.epoch, id, attempt, lease, now, nowText) end
  if epoch then return held(k, epoch) end
end
return { 2, call('PTTL', k.lock) }
