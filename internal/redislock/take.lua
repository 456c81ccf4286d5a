-- What every script begins with: giving a free lock to somebody. It is put in front of each of them.
local call = redis.call
local LINGER = '3600000'

local function clock()
  local t = call('TIME')
  return t[1] * 1000000 + t[2]
end

local function whole(n)
  return string.format('%.0f', n)
end

-- Makes an attempt the holder, whoever was it before. Returns the epoch, as a number and as text.
local function take(lock, epochKey, id, attempt, lease, now)
  local epoch, text = now, whole(now)
  local last = call('SET', epochKey, text, 'PX', LINGER, 'GET')
  if last and tonumber(last) >= now then
    epoch = last + 1
    text = whole(epoch)
    call('SET', epochKey, text, 'PX', LINGER)
  end
  call('HSET', lock, 'owner', id, 'hold', attempt, 'epoch', text)
  call('PEXPIRE', lock, lease)
  return epoch, text
end

