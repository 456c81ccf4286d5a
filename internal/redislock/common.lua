-- Functions of the scripts that read the queue. They precede each of those scripts, after take.lua.
--
-- Keys of one lock, all with its hash tag, in this order:
--   lock     string  "ID ATTEMPT EPOCH": a Locker, its attempt, the epoch; lives for the lease
--   queue    zset    waiting Lockers by when the waiter came whose turn is next
--   waiters  hash    Locker -> attempt:heartbeat:lease:visible; c:Locker -> the newest attempt
--                    that it has cancelled
--   epoch    string  the last epoch
-- The last three live for the lease or a minute, whichever is longer, after their last use. The queue may have half of
-- that left when a process joins it.
-- Times are microseconds of the server's clock, leases milliseconds.

local k = { lock = KEYS[1], queue = KEYS[2], waiters = KEYS[3], epoch = KEYS[4] }
local name = string.match(k.lock, '^(.*):v%d+:lock$')
local id, attempt = string.match(ARGV[1], '^(%S+) (%d+)$')

-- A waiter's attempt, last heartbeat, lease, and '1' where it was visible; or nil.
local function parse(record)
  return string.match(record or '', '^(%d+):(%d+):(%d+):([01])$')
end

local function waiter(k, id)
  return parse(call('HGET', k.waiters, id))
end

-- Whether an attempt is over: cancelled, or older than the queued one. The second result is the queued attempt.
local function over(k, id, attempt)
  local known = call('HMGET', k.waiters, id, 'c:' .. id)
  local mine, cancelled = parse(known[1]), known[2]
  return mine and tonumber(mine) > tonumber(attempt) or cancelled and tonumber(cancelled) >= tonumber(attempt), mine
end

-- The holder: the Locker, its attempt and the epoch. A value of another program is an error, not a free lock.
local function holder(k)
  local value = call('GET', k.lock)
  if not value then return nil end
  local owner, hold, epoch = string.match(value, '^(%S+) (%d+) (%d+)$')
  if not owner then error('the key of a lock has something else in it: ' .. k.lock) end
  return owner, hold, tonumber(epoch)
end

-- The epoch, if the attempt holds the lock.
local function holds(k, id, attempt)
  local owner, hold, epoch = holder(k)
  return owner == id and hold == attempt and epoch
end

-- Whether this server counts a subscriber to a Locker's channel. Pattern subscriptions do not count. In a
-- Cluster, or with subscriptions at a replica, a subscriber that is not counted can receive messages.
local function listens(id)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', CHANNEL .. id)
  return reply[2] ~= nil and reply[2] > 0
end

local function leave(k, id)
  redis.pcall('ZREM', k.queue, id)
  redis.pcall('HDEL', k.waiters, id)
end

-- Extends the expiry of the queue, and never shortens it: others in it may have a longer lease.
local function prolong(k, lease)
  for _, key in ipairs({ k.queue, k.waiters }) do
    if call('PTTL', key) < tonumber(keep(lease)) then call('PEXPIRE', key, keep(lease)) end
  end
end

-- Records a waiting Locker: its attempt, that it is alive, and whether it is visible here.
local function note(k, id, attempt, lease, text)
  local visible = listens(id) and '1' or '0'
  call('HSET', k.waiters, id, attempt .. ':' .. text .. ':' .. lease .. ':' .. visible)
end

-- Queues a Locker by the arrival of its waiter. Returns whether it is new at the head: acquire then
-- announces that to the holder.
local function join(k, id, attempt, lease, waited, now, text)
  note(k, id, attempt, lease, text)
  local new = call('ZADD', k.queue, now - waited, id) == 1
  local first = new and call('ZRANK', k.queue, id) == 0
  -- Not every time, because it takes four calls. Waits that are shorter than an interval send no heartbeat.
  if first or call('PTTL', k.queue) < tonumber(keep(lease)) / 2 then prolong(k, lease) end
  return first
end

-- Grants the lock to the first waiter that is alive, and publishes that on its channel; or deletes the
-- lock. A waiter that was visible here and is no longer counted is gone, or asks again: it is skipped
-- before anything is published. A published grant stands until its lease is over, whoever was counted.
-- The attempt that a Locker releases is not granted. Nothing is published for the caller, which reads
-- the reply; it is '' if nobody does. Returns the new holder, the epoch and the lease.
local function grant(k, name, caller, id, past, now, text)
  local gone = {}
  while true do
    local head = call('ZRANGE', k.queue, #gone, #gone)[1]
    if not head then break end
    gone[#gone + 1] = head
    local attempt, heartbeat, lease, visible = waiter(k, head)
    local live = attempt and heartbeat + lease * 1000 >= now and not (head == id and tonumber(attempt) <= past)
    if live and (head == caller or visible == '0' or listens(head)) then
      local epoch, epochText = take(k.lock, k.epoch, head .. ' ' .. attempt, lease, now, text)
      -- From here on nothing may end the script, because the grant must be published. An entry that
      -- cannot be removed, without the permission or in a slot that is being moved, stays in the queue.
      for _, one in ipairs(gone) do leave(k, one) end
      if head ~= caller then
        local others = redis.pcall('ZCARD', k.queue)
        if type(others) ~= 'number' then others = 0 end
        redis.pcall('PUBLISH', CHANNEL .. head, 'granted ' .. attempt .. ' ' .. epochText .. ' ' .. others .. ' ' .. name)
      end
      return head, epoch, tonumber(lease)
    end
  end
  call('DEL', k.lock)
  for _, one in ipairs(gone) do leave(k, one) end
end

-- Announces to the holder that another process waits. A holder that subscribes later assumes so.
local function contend(k, name)
  local owner = holder(k)
  if not owner then return end
  redis.pcall('PUBLISH', CHANNEL .. owner, 'contended ' .. name)
end

-- The reply to a holder: the epoch, and the number of waiting processes.
local function held(k, epoch)
  local others = redis.pcall('ZCARD', k.queue)
  return { 1, epoch, type(others) == 'number' and others or 0 }
end

-- The reply to a waiter: the time until the lock expires, in milliseconds.
local function waits(k)
  local ttl = redis.pcall('PTTL', k.lock)
  if ttl == -1 then holder(k) end -- only a value of another program does not expire
  return { 2, type(ttl) == 'number' and ttl or 0 }
end

