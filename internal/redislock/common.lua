-- What the scripts share. It is put in front of each of them, after take.lua, but for those that take or leave a lock
-- which nobody else wants.
--
-- Keys of one lock, all with its hash tag, in this order:
--   lock     string  "ID ATTEMPT EPOCH": a Locker, its attempt, the epoch; lives for the lease
--   queue    zset    waiting Lockers by when the waiter came whose turn is next; lingers
--   waiters  hash    Locker -> attempt:alive-until:lease; c:Locker -> the
--                    newest attempt that it has cancelled; lingers
--   epoch    string  the last epoch; lingers
-- Times are microseconds of the server's clock, leases milliseconds.

local function lockAt(base)
  return { lock = KEYS[base], queue = KEYS[base + 1], waiters = KEYS[base + 2], epoch = KEYS[base + 3] }
end

-- The attempt, the end of the heartbeat and the lease of a waiting Locker.
local function parse(record)
  if not record then return nil end
  local attempt, alive, lease = string.match(record, '^(%d+):(%d+):(%d+)$')
  return { attempt = attempt, alive = tonumber(alive), lease = lease }
end

local function waiter(k, id)
  return parse(call('HGET', k.waiters, id))
end

-- Whether an attempt is of the past: cancelled, or older than the one that is queued. And whether one is queued.
local function over(k, id, attempt)
  local known = call('HMGET', k.waiters, id, 'c:' .. id)
  local mine, cancelled = parse(known[1]), known[2]
  local past = mine and tonumber(mine.attempt) > tonumber(attempt) or cancelled and tonumber(cancelled) >= tonumber(attempt)
  return past, mine
end

-- Who has the lock: the Locker, its attempt and the epoch. What somebody else has put there is not free to be taken.
local function holder(k)
  local value = call('GET', k.lock)
  if not value then return nil end
  local owner, hold, epoch = string.match(value, '^(%S+) (%d+) (%d+)$')
  if not owner then error('the key of a lock has something else in it: ' .. k.lock) end
  return owner, hold, epoch
end

-- The epoch, if the attempt holds the lock.
local function holds(k, id, attempt)
  local owner, hold, epoch = holder(k)
  return owner == id and hold == attempt and tonumber(epoch)
end

local function leave(k, id)
  call('ZREM', k.queue, id)
  call('HDEL', k.waiters, id)
end

local function linger(k)
  call('PEXPIRE', k.queue, LINGER)
  call('PEXPIRE', k.waiters, LINGER)
end

-- Notes that a Locker that waits is alive, and under which attempt it waits.
local function note(k, id, attempt, lease, now)
  call('HSET', k.waiters, id, attempt .. ':' .. whole(now + lease * 1000) .. ':' .. lease)
end

-- Queues a Locker by when its waiter came. Says whether it is new at the head, which sees to it that the holder hears
-- of those who wait.
local function join(k, id, attempt, lease, now, came)
  local new = call('ZADD', k.queue, came, id) == 1
  note(k, id, attempt, lease, now)
  local first = new and call('ZRANK', k.queue, id) == 0
  if first or now % 64 == 0 then linger(k) end -- not every time: it takes two calls
  return first
end

-- Gives the lock to the first waiter that is alive, and tells it on its channel. Where the count of
-- receivers can be trusted, a message that reaches nobody means that the waiter is gone. The caller is not
-- told: it reads the reply; one that does not is ''. With nobody left the lock is free. Returns who has the
-- lock, the epoch and the lease.
local function grant(k, name, caller, trusted, now, nowText)
  while true do
    local id = call('ZPOPMIN', k.queue)[1]
    if not id then
      call('DEL', k.lock)
      return
    end
    local w = waiter(k, id)
    call('HDEL', k.waiters, id)
    if w and w.alive >= now then
      local epoch, text = take(k.lock, k.epoch, id .. ' ' .. w.attempt, w.lease, now, nowText)
      if id == caller then return id, epoch, tonumber(w.lease) end
      local others = call('ZCARD', k.queue)
      -- pcall: a script that ended here, say for want of a right, would leave its work half done. A
      -- grant that could not be told is found by the next beat.
      local heard = redis.pcall('PUBLISH', 'redislock:' .. id, 'granted ' .. w.attempt .. ' ' .. text .. ' ' .. others .. ' ' .. name)
      if heard ~= 0 or trusted == '0' then return id, epoch, tonumber(w.lease) end
    end
  end
end

-- Tells the holder that somebody waits. Where it does not listen, it assumes so when it begins to.
local function contend(owner, name)
  redis.pcall('PUBLISH', 'redislock:' .. owner, 'contended ' .. name)
end

-- The caller holds the lock, and so many others wait.
local function held(k, epoch)
  return { 1, epoch, call('ZCARD', k.queue) }
end

