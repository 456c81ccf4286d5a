-- Takes a lock, or queues for it.
-- KEYS  lock, queue, waiters, epoch
-- ARGV  1 the Locker, 2 its attempt, 3 the lease, 4 the lock's name,
--       5 "1" to queue when it is taken, 6 "1" where PUBLISH counts all receivers
-- Reply {1, epoch, others}  held
--       {2, ttl}            taken, and queued if asked to; ttl in milliseconds
--       {3}                 ignored: a newer attempt is known, or this one was cancelled
local k = lockAt(1)
local id, attempt, lease, name, queueUp, trusted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local now = clock()

if holds(k, id, attempt) then
  redis.call('PEXPIRE', k.lock, lease)
  return held(k)
end
local mine = waiter(k, id)
local cancelled = redis.call('HGET', k.waiters, 'c:' .. id)
if (mine and tonumber(mine.attempt) > tonumber(attempt)) or (cancelled and tonumber(cancelled) >= tonumber(attempt)) then
  return { 3 }
end

local free = redis.call('EXISTS', k.lock) == 0
if free then
  local head = redis.call('ZRANGE', k.queue, 0, 0)[1]
  if not head or head == id then
    if head then leave(k, id) end
    take(k, id, attempt, lease, now)
    return held(k)
  end
end
if queueUp == '1' then
  local first = redis.call('ZCARD', k.queue) == 0
  join(k, id, attempt, lease, now)
  if first and not free then
    redis.pcall('PUBLISH', 'redislock:' .. redis.call('HGET', k.lock, 'owner'), 'contended ' .. name)
  end
end
if free then
  -- Others were here first: one of them gets it, and the caller only if all of
  -- them are gone.
  grant(k, name, id, trusted, now)
  if holds(k, id, attempt) then return held(k) end
  if redis.call('EXISTS', k.lock) == 0 then
    take(k, id, attempt, lease, now)
    return held(k)
  end
end
return { 2, redis.call('PTTL', k.lock) }
