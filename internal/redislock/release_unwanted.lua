-- The beginning of release: releases a lock that nobody waits for, here or elsewhere.
local call = redis.call
local holder, mine = call('GET', KEYS[1]), ARGV[1] .. ' '
if not holder or string.sub(holder, 1, #mine) ~= mine then return 0 end
if #ARGV == 1 and call('EXISTS', KEYS[2]) == 0 then
  call('DEL', KEYS[1])
  return 2
end

