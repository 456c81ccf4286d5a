-- The beginning of release: releases a lock that nobody waits for, here or elsewhere.
local call = redis.call
if #ARGV == 1 and call('EXISTS', KEYS[2]) == 0 then
  local holder, mine = call('GET', KEYS[1]), ARGV[1] .. ' '
  if holder and string.sub(holder, 1, #mine) == mine then
    call('DEL', KEYS[1])
    return 2
  end
end

