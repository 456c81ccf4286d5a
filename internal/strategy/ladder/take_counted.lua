-- Takes units from a counter that has so many.
-- KEYS[1] the counter; ARGV[1] the units. Returns what is left, -1 for too few, nil for no counter.
local left = redis.call('GET', KEYS[1])
if not left then return nil end
if tonumber(left) < tonumber(ARGV[1]) then return -1 end
return redis.call('DECRBY', KEYS[1], ARGV[1])
