package mine

// The snippets are short, and in the languages in which people ask: what surrounds the mistake is left out.
var questions = []Question{
	{
		Key: "begin",
		Answers: []Answer{
			{
				Language: "java",
				Code: `@Transactional
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
`,
				Strategy: "lock-in-transaction", Scenario: "contention", Twin: "transaction-in-lock",
			},
			{
				Language: "php",
				Code: `$db->beginTransaction();
$user = $db->query("SELECT * FROM users WHERE id = $userId")->fetch();
$lock->acquire(true);
$stock = $db->query("SELECT stock FROM items WHERE id = $id")->fetchColumn();
$db->exec("UPDATE items SET stock = " . ($stock - 1) . " WHERE id = $id");
$db->commit();
$lock->release();
`,
				Strategy: "snapshot-before-lock", Scenario: "contention", Twin: "lock-then-for-update",
			},
		},
	},
	{
		Key: "write",
		Answers: []Answer{
			{
				Language: "python",
				Code: `item = session.get(Item, item_id)
if item.stock > 0:
    item.stock -= 1          # UPDATE items SET stock = 9 WHERE id = 42
    session.commit()
`,
				Strategy: "none", Scenario: "contention", Twin: "conditional",
			},
			{
				Language: "java",
				Code: `public synchronized void buy(long id) {
    Item item = items.findById(id).orElseThrow();
    item.setStock(item.getStock() - 1);
    items.save(item);
}
`,
				Strategy: "mutex", Scenario: "contention", Twin: "conditional",
			},
			{
				Language: "python",
				Code: `class Item(models.Model):
    stock = models.PositiveIntegerField()     # CHECK (stock >= 0)

item.stock = item.stock - 1
item.save()
`,
				Strategy: "check-constraint-absolute", Scenario: "contention", Twin: "check-constraint",
			},
			{
				Language: "php",
				Code: `$salable = $db->query("SELECT SUM(quantity) FROM reservations WHERE sku = 'A'")->fetchColumn();
if ($salable >= $wanted) {
    $db->exec("INSERT INTO reservations (sku, quantity) VALUES ('A', -$wanted)");
}
`,
				Strategy: "ledger", Scenario: "contention", Twin: "ledger-parent-locked",
			},
			{
				Language: "go",
				Code: `lock, err := locker.Acquire(ctx, "stock:42")
if err != nil {
	return err
}
defer lock.Release()
stock := read(ctx, 42)                                               // a pause here: garbage collection, a stopped machine
_, err = db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = 42", stock-1)
`,
				Strategy: "reentrant", Scenario: "pause", Twin: "fenced",
			},
		},
	},
	{
		Key: "read",
		Answers: []Answer{
			{
				Language: "python",
				Code: `def stock_of(item_id):                       # for the page, and for the sale
    cached = redis.get(f"cache:{item_id}")
    if cached is None:
        cached = db.scalar("SELECT stock FROM items WHERE id = %s", item_id)
        redis.set(f"cache:{item_id}", cached)
    return int(cached)

with redis.lock(f"stock:{item_id}"):
    stock = stock_of(item_id)
    db.execute("UPDATE items SET stock = %s WHERE id = %s", stock - 1, item_id)
    redis.delete(f"cache:{item_id}")
`,
				Strategy: "cached-read", Scenario: "page-view", Twin: "cached-page",
			},
			{
				Language: "java",
				Code: `int stock = cache.get(id, () -> items.stockOf(id));    // @Cacheable
items.setStock(id, stock - 1);
cache.put(id, stock - 1);                              // @CachePut
`,
				Strategy: "cached-read-through", Scenario: "page-view", Twin: "cached-page",
			},
			{
				Language: "lua",
				Code: `local left = tonumber(redis.call('GET', KEYS[1]))
if left < tonumber(ARGV[1]) then
  return 0
end
return redis.call('DECRBY', KEYS[1], ARGV[1])   -- "sold"; a goroutine writes the order
`,
				Strategy: "redis-async", Scenario: "crash-answered", Twin: "redis-stream",
			},
		},
	},
	{
		Key: "free",
		Answers: []Answer{
			{
				Language: "php",
				Code: `if ($redis->setnx("lock:42", 1)) {
    sell(42);
    $redis->del("lock:42");
}
`,
				Strategy: "setnx", Scenario: "crash", Twin: "set-ex-nx",
			},
			{
				Language: "python",
				Code: `if redis.setnx("lock:42", 1):
    redis.expire("lock:42", 10)
`,
				Strategy: "setnx-expire", Scenario: "crash-acquiring", Twin: "set-ex-nx",
			},
			{
				Language: "python",
				Code: `if redis.set("lock:42", 1, nx=True, ex=10):
    try:
        sell(42)
    finally:
        redis.delete("lock:42")
`,
				Strategy: "set-ex-nx", Scenario: "late-release", Twin: "owner-checked",
			},
			{
				Language: "java",
				Code: `if (uuid.equals(redisTemplate.opsForValue().get("lock:42"))) {
    redisTemplate.delete("lock:42");
}
`,
				Strategy: "owner-get-del", Scenario: "split-release", Twin: "owner-checked",
			},
			{
				Language: "go",
				Code: `mutex := rs.NewMutex("stock:42", redsync.WithExpiry(8*time.Second))
mutex.Lock()
defer mutex.Unlock()
pay(ctx)                    // a payment provider that answers after ten seconds
sell(ctx)
`,
				Strategy: "owner-checked", Scenario: "overrun", Twin: "reentrant",
			},
			{
				Language: "java",
				Code: `@RedisLock(key = "'order:' + #userId")
public Order buy(long userId, long itemId) {
`,
				Strategy: "wrong-key-customer", Scenario: "contention", Twin: "reentrant",
			},
			{
				Language: "php",
				Code: `$lock = Cache::lock(config('app.instance') . ":stock:$id", 10);
`,
				Strategy: "wrong-key-shop", Scenario: "contention", Twin: "reentrant",
			},
		},
	},
	{
		Key: "repeat",
		Answers: []Answer{
			{
				Language: "python",
				Code: `@retry(OperationalError, tries=3)
def buy(item_id):
    with engine.begin() as tx:
        taken = tx.execute(text("UPDATE items SET stock = stock - 1 WHERE id = :id AND stock > 0"), {"id": item_id})
        if taken.rowcount == 0:
            raise SoldOut
        tx.execute(text("INSERT INTO orders (item_id) VALUES (:id)"), {"id": item_id})
`,
				Strategy: "retry-without-key", Scenario: "commit-unanswered", Twin: "retry-with-key",
			},
			{
				Language: "python",
				Code: `def on_message(channel, method, properties, body):
    channel.basic_ack(method.delivery_tag)
    write_order(body)
`,
				Strategy: "ack-first", Scenario: "crash", Twin: "redis-stream",
			},
			{
				Language: "go",
				Code: `func (s *Shop) Buy(id int) error {
	return s.lock.Do(key(id), func() error { return s.take(id, 1) })
}

func (s *Shop) take(id, n int) error {
	return s.lock.Do(key(id), func() error { return s.write(id, n) })
}
`,
				Strategy: "owner-checked", Scenario: "nested", Twin: "reentrant",
			},
		},
	},
}
