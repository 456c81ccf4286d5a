-- Drops the stream of a shop that is dead, once it is empty.
-- KEYS[1] the stream, KEYS[2] the shops that have a stream, KEYS[3] there while the shop is alive.
-- ARGV[1] the shop.
if redis.call('EXISTS', KEYS[3]) == 1 or redis.call('XLEN', KEYS[1]) > 0 then return 0 end
redis.call('SREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
