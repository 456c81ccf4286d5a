-- What the scripts share. It is put in front of each of them.
--
-- Keys of one lock, all with its hash tag, in this order:
--   lock     hash    owner (a Locker), hold (its attempt), epoch; lives for the lease
--   queue    zset    waiting Lockers by arrival; lingers
--   waiters  hash    Locker -> attempt:alive-until:lease; c:Locker -> the
--                    newest attempt that it has cancelled; lingers
--   epoch    string  the last epoch; lingers
-- Times are microseconds of the server's clock, leases milliseconds.

local LINGER = 3600000

local function clock()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

local function whole(n)
  return string.format('%.0f', n)
end

local function lockAt(base)
  return { lock = KEYS[base], queue = KEYS[base + 1], waiters = KEYS[base + 2], epoch = KEYS[base + 3] }
end

-- The attempt, the end of the heartbeat and the lease of a waiting Locker.
local function waiter(k, id)
  local w = redis.call('HGET', k.waiters, id)
  if not w then return nil end
  local attempt, alive, lease = string.match(w, '^(%d+):(%d+):(%d+)$')
  return { attempt = attempt, alive = tonumber(alive), lease = lease }
end

local function holds(k, id, attempt)
  local h = redis.call('HMGET', k.lock, 'owner', 'hold')
  return h[1] == id and h[2] == attempt
end

local function take(k, id, attempt, lease, now)
  local last = tonumber(redis.call('GET', k.epoch) or '0')
  local epoch = whole(math.max(last + 1, now))
  redis.call('HSET', k.lock, 'owner', id, 'hold', attempt, 'epoch', epoch)
  redis.call('PEXPIRE', k.lock, lease)
  redis.call('SET', k.epoch, epoch, 'PX', LINGER)
  return epoch
end

local function leave(k, id)
  redis.call('ZREM', k.queue, id)
  redis.call('HDEL', k.waiters, id)
end

-- Puts a Locker at the queue's tail, or renews its place.
local function join(k, id, attempt, lease, now)
  if not redis.call('ZSCORE', k.queue, id) then
    local tail = redis.call('ZRANGE', k.queue, -1, -1, 'WITHSCORES')
    redis.call('ZADD', k.queue, (tonumber(tail[2]) or 0) + 1, id)
    redis.call('PEXPIRE', k.queue, LINGER)
  end
  redis.call('HSET', k.waiters, id, attempt .. ':' .. whole(now + tonumber(lease) * 1000) .. ':' .. lease)
  redis.call('PEXPIRE', k.waiters, LINGER)
end

-- Gives a free lock to the first waiter that is alive, and tells it on its
-- channel. Where the count of receivers can be trusted, a message that reaches
-- nobody means that the waiter is gone. The caller is not told: it reads the reply.
local function grant(k, name, caller, trusted, now)
  while true do
    local id = redis.call('ZRANGE', k.queue, 0, 0)[1]
    if not id then return end
    local w = waiter(k, id)
    leave(k, id)
    if w and w.alive >= now then
      local epoch = take(k, id, w.attempt, w.lease, now)
      if id == caller then return end
      local others = redis.call('ZCARD', k.queue)
      -- pcall: a script that ended here, say for want of a right, would leave its work half done. A
      -- grant that could not be told is found by the next beat.
      local heard = redis.pcall('PUBLISH', 'redislock:' .. id, 'granted ' .. w.attempt .. ' ' .. epoch .. ' ' .. others .. ' ' .. name)
      if heard ~= 0 or trusted == '0' then return end
      redis.call('DEL', k.lock)
    end
  end
end

-- {1, epoch, others}: the caller holds the lock, and so many others wait.
local function held(k)
  return { 1, redis.call('HGET', k.lock, 'epoch'), redis.call('ZCARD', k.queue) }
end

