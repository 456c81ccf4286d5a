-- What release.lua comes to where nobody waits for the lock. It stands in front of the rest, which then
-- costs nothing.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'hold')
if holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2] then return 0 end
local first -- who waits, unless the caller queues anew behind them
if ARGV[5] == '' then first = redis.call('ZPOPMIN', KEYS[2])[1] end
if ARGV[5] == '' and not first then
  redis.call('DEL', KEYS[1])
  return 2
end

