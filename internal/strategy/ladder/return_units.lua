-- Settles the message of a sale that makes no order: its units go back. Its customer has another order
-- under the same key, or the counter was lost and set too high, and MySQL has fewer units than were wanted.
-- KEYS[1] the stream, KEYS[2] the counter.
-- ARGV[1] the group, ARGV[2] the message, ARGV[3] the units, ARGV[4] 1 if messages are acknowledged before.
-- A message that was settled before returns nothing. A counter that is lost is set from MySQL.
if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 and ARGV[4] ~= '1' then return 0 end
redis.call('XDEL', KEYS[1], ARGV[2])
if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('INCRBY', KEYS[2], ARGV[3]) end
return 1
