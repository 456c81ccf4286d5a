package mine

// The snippets are short, and in the languages in which people ask: what surrounds the mistake is left out.
var questions = []Question{
	{"begin", []Answer{
		{"java", "lock-in-transaction", "contention", "transaction-in-lock", `@Transactional
public void buy(long id) {
    RLock lock = redisson.getLock("stock:" + id);
    lock.lock();
    try {
        Item item = items.findById(id).orElseThrow();
        item.setStock(item.getStock() - 1);
    } finally {
        lock.unlock();
    }
}   // the COMMIT comes here: after the lock is free
`},
		{"php", "snapshot-before-lock", "contention", "lock-then-for-update", `$db->beginTransaction();
$user = $db->query("SELECT * FROM users WHERE id = $userId")->fetch();
$lock->acquire(true);
$stock = $db->query("SELECT stock FROM items WHERE id = $id")->fetchColumn();
$db->exec("UPDATE items SET stock = " . ($stock - 1) . " WHERE id = $id");
$db->commit();
$lock->release();
`},
	}},
	{"write", []Answer{
		{"python", "none", "contention", "conditional", `item = session.get(Item, item_id)
if item.stock > 0:
    item.stock -= 1          # UPDATE items SET stock = 9 WHERE id = 42
    session.commit()
`},
		{"java", "mutex", "contention", "conditional", `public synchronized void buy(long id) {
    Item item = items.findById(id).orElseThrow();
    item.setStock(item.getStock() - 1);
    items.save(item);
}
`},
		{"python", "check-constraint-absolute", "contention", "check-constraint", `class Item(models.Model):
    stock = models.PositiveIntegerField()     # CHECK (stock >= 0)

item.stock = item.stock - 1
item.save()
`},
		{"php", "ledger", "contention", "ledger-parent-locked", `$salable = $db->query("SELECT SUM(quantity) FROM reservations WHERE sku = 'A'")->fetchColumn();
if ($salable >= $wanted) {
    $db->exec("INSERT INTO reservations (sku, quantity) VALUES ('A', -$wanted)");
}
`},
		{"go", "reentrant", "pause", "fenced", `lock, err := locker.Acquire(ctx, "stock:42")
if err != nil {
	return err
}
defer lock.Release()
stock := read(ctx, 42)                                               // a pause here: garbage collection, a stopped machine
_, err = db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = 42", stock-1)
`},
	}},
	{"read", []Answer{
		{"python", "cached-read", "page-view", "cached-page", `def stock_of(item_id):                       # for the page, and for the sale
    cached = redis.get(f"cache:{item_id}")
    if cached is None:
        cached = db.scalar("SELECT stock FROM items WHERE id = %s", item_id)
        redis.set(f"cache:{item_id}", cached)
    return int(cached)

with redis.lock(f"stock:{item_id}"):
    stock = stock_of(item_id)
    db.execute("UPDATE items SET stock = %s WHERE id = %s", stock - 1, item_id)
    redis.delete(f"cache:{item_id}")
`},
		{"java", "cached-read-through", "page-view", "cached-page", `int stock = cache.get(id, () -> items.stockOf(id));    // @Cacheable
items.setStock(id, stock - 1);
cache.put(id, stock - 1);                              // @CachePut
`},
		{"lua", "redis-async", "crash-answered", "redis-stream", `local left = tonumber(redis.call('GET', KEYS[1]))
if left < tonumber(ARGV[1]) then
  return -1
end
return redis.call('DECRBY', KEYS[1], ARGV[1])   -- "sold"; a goroutine writes the order
`},
	}},
	{"free", []Answer{
		{"php", "setnx", "crash", "set-ex-nx", `if ($redis->setnx("lock:42", 1)) {
    sell(42);
    $redis->del("lock:42");
}
`},
		{"python", "setnx-expire", "crash-acquiring", "set-ex-nx", `if redis.setnx("lock:42", 1):
    redis.expire("lock:42", 10)
`},
		{"python", "set-ex-nx", "late-release", "owner-checked", `if redis.set("lock:42", 1, nx=True, ex=10):
    try:
        sell(42)
    finally:
        redis.delete("lock:42")
`},
		{"java", "owner-get-del", "split-release", "owner-checked", `if (uuid.equals(redisTemplate.opsForValue().get("lock:42"))) {
    redisTemplate.delete("lock:42");
}
`},
		{"go", "owner-checked", "overrun", "reentrant", `mutex := rs.NewMutex("stock:42", redsync.WithExpiry(8*time.Second))
mutex.Lock()
defer mutex.Unlock()
pay(ctx)                    // a payment provider that answers after ten seconds
sell(ctx)
`},
		{"java", "wrong-key-customer", "contention", "reentrant", `@RedisLock(key = "'order:' + #userId")
public Order buy(long userId, long itemId) {
`},
		{"php", "wrong-key-shop", "contention", "reentrant", `$lock = Cache::lock(config('app.instance') . ":stock:$id", 10);
`},
	}},
	{"repeat", []Answer{
		{"python", "retry-without-key", "commit-unanswered", "retry-with-key", `@retry(OperationalError, tries=3)
def buy(item_id):
    with engine.begin() as tx:
        taken = tx.execute(text("UPDATE items SET stock = stock - 1 WHERE id = :id AND stock > 0"), {"id": item_id})
        if taken.rowcount == 0:
            raise SoldOut
        tx.execute(text("INSERT INTO orders (item_id) VALUES (:id)"), {"id": item_id})
`},
		{"python", "ack-first", "crash", "redis-stream", `def on_message(channel, method, properties, body):
    channel.basic_ack(method.delivery_tag)
    write_order(body)
`},
		{"go", "owner-checked", "nested", "reentrant", `func (s *Shop) Buy(id int) error {
	return s.lock.Do(key(id), func() error { return s.take(id, 1) })
}

func (s *Shop) take(id, n int) error {
	return s.lock.Do(key(id), func() error { return s.write(id, n) })
}
`},
	}},
}
