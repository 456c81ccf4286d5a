-- Takes units from a counter that has so many, and adds the sale to the shop's stream.
-- KEYS[1] the counter, KEYS[2] the stream, KEYS[3] the shops that have a stream, KEYS[4] there while the shop is alive.
-- ARGV[1] the units, ARGV[2] the shop, ARGV[3] and ARGV[4] the message's field and value, ARGV[5] the lease.
-- Returns what is left, -1 for too few, nil for no counter.
local left = redis.call('GET', KEYS[1])
if not left then return nil end
if tonumber(left) < tonumber(ARGV[1]) then return -1 end
if redis.call('SADD', KEYS[3], ARGV[2]) == 1 then redis.call('SET', KEYS[4], 1, 'PX', ARGV[5]) end
redis.call('XADD', KEYS[2], '*', ARGV[3], ARGV[4])
return redis.call('DECRBY', KEYS[1], ARGV[1])
