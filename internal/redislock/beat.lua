-- Renews what a Locker holds and waits for, for many locks at once.
-- KEYS  lock, queue, waiters, epoch of each lock
-- ARGV  1 the Locker, 2 "1" where PUBLISH counts all receivers, and then for each lock
--       "hold" or "wait", the attempt, the lease, the name
-- Reply for each lock
--       {1, epoch, others}  held, with a full lease
--       {2, ttl}            waiting, and its heartbeat is renewed; ttl in milliseconds
--       3                   neither: the hold is lost, or the attempt is not queued (any more)
--       4                   it failed, and the others need not suffer for it
local id, trusted = ARGV[1], ARGV[2]
local now, nowText = clock()

local function beat(k, kind, attempt, lease, name)
  local reply = 3
  local mine = kind == 'wait' and waiter(k, id)
  if mine and mine.attempt == attempt then
    call('ZADD', k.queue, 'LT', now, id) -- a place in the future is from before the clock was set back
    note(k, id, attempt, lease, now)
    linger(k)
    if not holder(k) then grant(k, name, id, trusted, now, nowText) end
    reply = { 2, call('PTTL', k.lock) }
  end
  local epoch = holds(k, id, attempt)
  if epoch then
    call('PEXPIRE', k.lock, lease)
    reply = held(k, epoch)
  end
  return reply
end

local replies = {}
for i = 1, #KEYS / 4 do
  local ok, reply = pcall(beat, lockAt(4 * i - 3), unpack(ARGV, 4 * i - 1, 4 * i + 2))
  replies[i] = ok and reply or 4
end
return replies
