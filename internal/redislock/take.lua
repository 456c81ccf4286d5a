-- Functions that give a free lock to a process. They precede each script that does.
local call = redis.call
local CHANNEL = 'redislock:'

-- The expiry, in milliseconds, of keys that outlive a hold. It is text, which takes less time than a
-- number in a call of Redis.
local function keep(lease)
  return tonumber(lease) > 60000 and lease or '60000'
end

-- The server's time in microseconds, as a number and as text. Text that is put together takes half
-- the time of text that is made from a number.
local function clock()
  local t = call('TIME')
  local text = t[1] .. string.sub('00000' .. t[2], -6)
  return tonumber(text), text
end

-- Makes "ID ATTEMPT" the holder. Now is as clock returns it. Returns the epoch, likewise.
-- The lock is written last: a script that ends before that has given it to nobody.
local function take(lock, epochKey, holder, lease, now, text)
  local last, epoch = call('SET', epochKey, text, 'PX', keep(lease), 'GET'), now
  if last and tonumber(last) >= now then
    epoch = last + 1
    text = string.format('%.0f', epoch)
    call('SET', epochKey, text, 'PX', keep(lease))
  end
  call('SET', lock, holder .. ' ' .. text, 'PX', lease)
  return epoch, text
end

