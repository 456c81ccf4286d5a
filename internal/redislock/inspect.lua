-- Returns the holder of a lock, and its waiters. It writes nothing.
-- KEYS  lock, queue, waiters, epoch
-- Reply {holder or '', ttl in milliseconds, {id, record, score, ...}, now in microseconds}
local waiting = {}
local queue = call('ZRANGE', k.queue, 0, -1, 'WITHSCORES')
for i = 1, #queue, 2 do
  waiting[#waiting + 1] = queue[i]
  waiting[#waiting + 1] = call('HGET', k.waiters, queue[i]) or ''
  waiting[#waiting + 1] = queue[i + 1]
end
local _, text = clock()
return { call('GET', k.lock) or '', call('PTTL', k.lock), waiting, text }
