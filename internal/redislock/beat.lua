-- Renews what a Locker holds and waits for, for many locks at once.
-- KEYS  lock, queue, waiters, epoch of each lock
-- ARGV  1 the Locker, 2 "1" where PUBLISH counts all receivers, and then for each lock
--       "hold" or "wait", the attempt, the lease, the name
-- Reply for each lock
--       {1, epoch, others}  held, with a full lease
--       {2, ttl}            waiting, and its heartbeat is renewed; ttl in milliseconds
--       {2, ttl, 0}         likewise, but the holder, who does not know, does not listen
--       3                   neither: the hold is lost, or the attempt is not queued (any more)
local id, trusted = ARGV[1], ARGV[2]
local now, nowText = clock()
local replies = {}
for i = 1, #KEYS / 4 do
  local k = lockAt(4 * i - 3)
  local kind, attempt, lease, name = ARGV[4 * i - 1], ARGV[4 * i], ARGV[4 * i + 1], ARGV[4 * i + 2]
  local reply = 3
  local mine = kind == 'wait' and waiter(k, id)
  if mine and mine.attempt == attempt then
    join(k, id, attempt, lease, now, now)
    linger(k)
    local owner, unread = holder(k), nil
    if not owner then
      grant(k, name, id, trusted, now, nowText)
    elseif call('ZRANGE', k.queue, 0, 0)[1] == id then
      unread = contend(owner, name, trusted)
    end
    reply = { 2, call('PTTL', k.lock), unread }
  end
  local epoch = holds(k, id, attempt)
  if epoch then
    call('PEXPIRE', k.lock, lease)
    reply = held(k, epoch)
  end
  replies[i] = reply
end
return replies
