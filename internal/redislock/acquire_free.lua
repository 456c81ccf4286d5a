-- The beginning of acquire: takes a lock that nobody has, waits for, or has cancelled an attempt at.
-- Most locks are like that most of the time. It comes before the functions, because to make them takes
-- as long as this does. So it says what take in take.lua says.
local call = redis.call
local there = call('EXISTS', KEYS[1], KEYS[3])
if there == 0 then
  local t, lease = call('TIME'), ARGV[2]
  local text = t[1] .. string.sub('00000' .. t[2], -6)
  local now, keep = tonumber(text), tonumber(lease) > 60000 and lease or '60000'
  local last = call('SET', KEYS[4], text, 'PX', keep, 'GET')
  if not last or tonumber(last) < now then
    call('SET', KEYS[1], ARGV[1] .. ' ' .. text, 'PX', lease)
    return now
  end
  call('SET', KEYS[4], last, 'PX', keep) -- the clock was set back: see take
end

