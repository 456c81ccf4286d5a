package mine

// The snippets are short, and in the languages in which people ask: what surrounds the mistake is left out.
var questions = []Question{
	{
		Key: "begin",
		Ask: Text{"Where does the transaction begin?", "事务从哪里开始？"},
		Look: Text{
			"Look for the annotation, decorator or closure that begins a transaction, and for the lines that take and free the lock. Which one is outside? Is anything read before the lock?",
			"找到开始事务的注解、装饰器或闭包，再找到加锁和释放锁的代码行：哪一个在外面？有没有东西在加锁之前就读了？",
		},
		Answers: []Answer{
			{
				Says: Text{
					"Around the lock: the method is annotated, and the lock is taken and freed inside it.",
					"在锁的外面：方法上有事务注解，锁在方法里面获取和释放。",
				},
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
				Why: Text{
					"The next customer gets the lock between `unlock` and COMMIT, and reads a stock that is about to be overwritten. The lock excluded, and it protected nothing.",
					"下一位顾客在 `unlock` 与 COMMIT 之间拿到锁，读到的库存马上就会被覆盖。锁确实互斥，却什么也没有保护。",
				},
				Strategy: "lock-in-transaction", Scenario: "contention", Twin: "transaction-in-lock",
			},
			{
				Says: Text{
					"Before the lock: the stock or something else is read first, then the lock is taken. The COMMIT is inside the lock.",
					"在加锁之前：先读了库存或别的东西，再加锁。COMMIT 在锁里面。",
				},
				Language: "php",
				Code: `$db->beginTransaction();
$user = $db->query("SELECT * FROM users WHERE id = $userId")->fetch();
$lock->acquire(true);
$stock = $db->query("SELECT stock FROM items WHERE id = $id")->fetchColumn();
$db->exec("UPDATE items SET stock = " . ($stock - 1) . " WHERE id = $id");
$db->commit();
$lock->release();
`,
				Why: Text{
					"Under REPEATABLE READ, the first SELECT fixes what all later ones see. The stock is read inside the lock, and is as old as the user. A stock that is read before the lock, and not again, is as old without any transaction.",
					"在 REPEATABLE READ 下，第一条 SELECT 决定了之后所有 SELECT 看到的内容。库存虽然在锁里面读，却和用户信息一样旧。加锁之前读的库存，之后不再读一次，没有事务也一样旧。",
				},
				Strategy: "snapshot-before-lock", Scenario: "contention", Twin: "lock-then-for-update",
			},
		},
	},
	{
		Key: "write",
		Ask: Text{"What does the write say?", "写入语句写的是什么？"},
		Look: Text{
			"Look at the statement that changes the stock. Does the database compute the new value, or does the code? Is there a row to conflict on at all?",
			"看修改库存的那条语句：新值是数据库算的，还是代码算的？究竟有没有一行会发生冲突？",
		},
		Answers: []Answer{
			{
				Says: Text{
					"A number that the code has computed, and nothing keeps others out.",
					"代码算好的一个数，而且没有任何东西挡住别人。",
				},
				Language: "python",
				Code: `item = session.get(Item, item_id)
if item.stock > 0:
    item.stock -= 1          # UPDATE items SET stock = 9 WHERE id = 42
    session.commit()
`,
				Why: Text{
					"Two customers read the same stock, and the second write erases the first: a lost update. A transaction around it changes nothing.",
					"两位顾客读到同样的库存，后一次写入抹掉前一次：这就是丢失更新。外面再套一个事务也没有用。",
				},
				Strategy: "none", Scenario: "contention", Twin: "conditional",
			},
			{
				Says: Text{
					"A number that the code has computed, inside a lock of the process: `synchronized`, a mutex, `asyncio.Lock`.",
					"代码算好的一个数，放在进程内的锁里：`synchronized`、互斥锁、`asyncio.Lock`。",
				},
				Language: "java",
				Code: `public synchronized void buy(long id) {
    Item item = items.findById(id).orElseThrow();
    item.setStock(item.getStock() - 1);
    items.save(item);
}
`,
				Why: Text{
					"The lock keeps out the threads of its own process. The shop runs in several.",
					"这把锁只能挡住本进程的线程，而商店运行在好几个进程里。",
				},
				Strategy: "mutex", Scenario: "contention", Twin: "conditional",
			},
			{
				Says: Text{
					"A number that the code has computed; a CHECK or an UNSIGNED column is to refuse what is too much.",
					"代码算好的一个数，指望 CHECK 约束或 UNSIGNED 列拒绝超出的部分。",
				},
				Language: "python",
				Code: `class Item(models.Model):
    stock = models.PositiveIntegerField()     # CHECK (stock >= 0)

item.stock = item.stock - 1
item.save()
`,
				Why: Text{
					"The constraint sees 9, and 9 is allowed, however often it is written. It guards a relative write, `stock = stock - 1`, and no absolute one.",
					"约束看到的是 9，而 9 无论写多少次都合法。它能守住相对写入 `stock = stock - 1`，守不住绝对写入。",
				},
				Strategy: "check-constraint-absolute", Scenario: "contention", Twin: "check-constraint",
			},
			{
				Says: Text{
					"It appends a row to a ledger, after the sum of the ledger was enough.",
					"先求流水表的和，够了就追加一行。",
				},
				Language: "php",
				Code: `$salable = $db->query("SELECT SUM(quantity) FROM reservations WHERE sku = 'A'")->fetchColumn();
if ($salable >= $wanted) {
    $db->exec("INSERT INTO reservations (sku, quantity) VALUES ('A', -$wanted)");
}
`,
				Why: Text{
					"Two customers take the same sum and append different rows. There is no row to conflict on: write skew.",
					"两位顾客算出同样的和，各自追加不同的行。没有任何一行会冲突：这就是写偏斜。",
				},
				Strategy: "ledger", Scenario: "contention", Twin: "ledger-parent-locked",
			},
			{
				Says: Text{
					"A number that the code has computed, inside a distributed lock with a lease and a watchdog.",
					"代码算好的一个数，放在带租约和看门狗的分布式锁里。",
				},
				Language: "go",
				Code: `lock, err := locker.Acquire(ctx, "stock:42")
if err != nil {
	return err
}
defer lock.Release()
stock := read(ctx, 42)                                               // a pause here: garbage collection, a stopped machine
_, err = db.ExecContext(ctx, "UPDATE items SET stock = ? WHERE id = 42", stock-1)
`,
				Why: Text{
					"A process that is paused for longer than its lease does not know it, and writes. No lock with a lease stops that write. The database can, if it compares a token.",
					"进程暂停超过租约，自己并不知道，醒来照样写入。带租约的锁都挡不住这次写入；数据库比较隔离令牌（fencing token）就能挡住。",
				},
				Strategy: "reentrant", Scenario: "pause", Twin: "fenced",
			},
		},
	},
	{
		Key: "read",
		Ask: Text{"Where does the read come from?", "读到的值来自哪里？"},
		Look: Text{
			"Look at the value that decides whether there is enough. Is it the row that is written, or a copy of it?",
			"看决定库存够不够的那个值：它就是要写的那一行，还是一份副本？",
		},
		Answers: []Answer{
			{
				Says: Text{
					"From a cache that the page view fills and the sale deletes.",
					"来自缓存：页面浏览时填充，销售之后删除。",
				},
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
				Why: Text{
					"A page view reads the row before the sale writes it, and fills the cache after the sale has deleted it. It has no lock. The next sale decides by that old value.",
					"一次页面浏览在销售写入之前读了这一行，在销售删除缓存之后才填充缓存。它没有加锁。下一笔销售就按这个旧值决定。",
				},
				Strategy: "cached-read", Scenario: "page-view", Twin: "cached-page",
			},
			{
				Says: Text{
					"From a cache that the sale itself writes.",
					"来自缓存，由销售自己写入新值。",
				},
				Language: "java",
				Code: `int stock = cache.get(id, () -> items.stockOf(id));    // @Cacheable
items.setStock(id, stock - 1);
cache.put(id, stock - 1);                              // @CachePut
`,
				Why: Text{
					"The same page view stores its old value after the `put`.",
					"同样的页面浏览会在 `put` 之后存入它的旧值。",
				},
				Strategy: "cached-read-through", Scenario: "page-view", Twin: "cached-page",
			},
			{
				Says: Text{
					"From a counter or a copy of the stock in Redis, which the sale counts down. The database learns of the sale later.",
					"来自 Redis 里的计数器或库存副本，由销售扣减。数据库之后才知道这笔销售。",
				},
				Language: "lua",
				Code: `local left = tonumber(redis.call('GET', KEYS[1]))
if left < tonumber(ARGV[1]) then
  return 0
end
return redis.call('DECRBY', KEYS[1], ARGV[1])   -- "sold"; a goroutine writes the order
`,
				Why: Text{
					"The script is atomic, and the customer has an answer. The shop dies before the order is written: sold in Redis, and nowhere else. With GET and DECR as two commands, two customers also take the last unit, as in `none:contention`.",
					"脚本是原子的，顾客也得到了答复。商店在写入订单之前死掉：只在 Redis 里卖出了，别处都没有。GET 和 DECR 分成两条命令时，两位顾客还会一起拿走最后一件，和 `none:contention` 一样。",
				},
				Strategy: "redis-async", Scenario: "crash-answered", Twin: "redis-stream",
			},
		},
	},
	{
		Key: "free",
		Ask: Text{"What frees the lock, and what is its key?", "锁由什么释放，锁的键是什么？"},
		Look: Text{
			"Look at the lines that free the lock, at what happens if they are never reached, and at the text of the key.",
			"看释放锁的代码行，看这些行执行不到时会怎样，再看键的内容。",
		},
		Answers: []Answer{
			{
				Says: Text{
					"Only the holder: if its process dies, the lock stays.",
					"只有持有者：它的进程死了，锁就一直在。",
				},
				Language: "php",
				Code: `if ($redis->setnx("lock:42", 1)) {
    sell(42);
    $redis->del("lock:42");
}
`,
				Why: Text{
					"The lock has no end of its own. One dead process, and the item is not sold any more.",
					"锁自己不会结束。死掉一个进程，这件商品就再也卖不出去。",
				},
				Strategy: "setnx", Scenario: "crash", Twin: "set-ex-nx",
			},
			{
				Says: Text{
					"An expiry that a second command sets.",
					"第二条命令设置的租约。",
				},
				Language: "python",
				Code: `if redis.setnx("lock:42", 1):
    redis.expire("lock:42", 10)
`,
				Why: Text{
					"A process can die between the two commands. Both are one: `SET key value NX PX 10000`.",
					"进程可能死在两条命令之间。一条命令就能做完：`SET key value NX PX 10000`。",
				},
				Strategy: "setnx-expire", Scenario: "crash-acquiring", Twin: "set-ex-nx",
			},
			{
				Says: Text{
					"DEL, without a look at whose lock it is.",
					"DEL，不看锁是谁的。",
				},
				Language: "python",
				Code: `if redis.set("lock:42", 1, nx=True, ex=10):
    try:
        sell(42)
    finally:
        redis.delete("lock:42")
`,
				Why: Text{
					"A holder that is late frees the lock of the next one. A third customer enters.",
					"迟到的持有者释放了下一位的锁，第三位顾客就进来了。",
				},
				Strategy: "set-ex-nx", Scenario: "late-release", Twin: "owner-checked",
			},
			{
				Says: Text{
					"GET, a comparison in the code, DEL.",
					"先 GET，在代码里比较，再 DEL。",
				},
				Language: "java",
				Code: `if (uuid.equals(redisTemplate.opsForValue().get("lock:42"))) {
    redisTemplate.delete("lock:42");
}
`,
				Why: Text{
					"The lock can change hands between the look and the delete. A script does both at once, or the server's own command: `DELEX`, `DELIFEQ`.",
					"在查看与删除之间，锁可能已经换了主人。脚本能一次做完两步，服务器自带的命令也能：`DELEX`、`DELIFEQ`。",
				},
				Strategy: "owner-get-del", Scenario: "split-release", Twin: "owner-checked",
			},
			{
				Says: Text{
					"The end of its lease, while the work goes on.",
					"租约到期，而工作还没有做完。",
				},
				Language: "go",
				Code: `mutex := rs.NewMutex("stock:42", redsync.WithExpiry(8*time.Second))
mutex.Lock()
defer mutex.Unlock()
pay(ctx)                    // a payment provider that answers after ten seconds
sell(ctx)
`,
				Why: Text{
					"The lease ends, and the next customer enters. Nobody tells the holder. A watchdog renews the lease while the work lasts.",
					"租约到期，下一位顾客进来，而没有人告诉持有者。看门狗会在工作期间续期。",
				},
				Strategy: "owner-checked", Scenario: "overrun", Twin: "reentrant",
			},
			{
				Says: Text{
					"The key names the customer: it keeps the same customer from buying twice at once.",
					"键里是顾客：它只挡住同一位顾客同时买两次。",
				},
				Language: "java",
				Code: `@RedisLock(key = "'order:' + #userId")
public Order buy(long userId, long itemId) {
`,
				Why: Text{
					"Two customers have two locks. Each lock excludes, and neither protects the item.",
					"两位顾客就有两把锁。每把锁都互斥，却没有一把保护商品。",
				},
				Strategy: "wrong-key-customer", Scenario: "contention", Twin: "reentrant",
			},
			{
				Says: Text{
					"The key has a prefix that differs from process to process: a host name, an instance, a version.",
					"键有前缀，而且每个进程不同：主机名、实例、版本。",
				},
				Language: "php",
				Code: `$lock = Cache::lock(config('app.instance') . ":stock:$id", 10);
`,
				Why: Text{
					"Each shop has a lock of its own: a mutex of the process, at the price of two requests.",
					"每个商店各有一把锁：花了两次请求，得到的只是进程内的互斥锁。",
				},
				Strategy: "wrong-key-shop", Scenario: "contention", Twin: "reentrant",
			},
		},
	},
	{
		Key: "repeat",
		Ask: Text{"How often is it repeated?", "它会重复多少次？"},
		Look: Text{
			"Look for what repeats a sale: a retry, a queue that delivers again, a customer's second click, a method that calls another.",
			"看什么会让一笔销售重来：重试、队列再次投递、顾客再点一次、方法调用另一个方法。",
		},
		Answers: []Answer{
			{
				Says: Text{
					"Again when the COMMIT has no answer, without a key that names the purchase.",
					"COMMIT 没有答复就再来一次，而且没有标识这次购买的幂等键。",
				},
				Language: "python",
				Code: `@retry(OperationalError, tries=3)
def buy(item_id):
    with engine.begin() as tx:
        tx.execute(text("UPDATE items SET stock = stock - 1 WHERE id = :id AND stock > 0"), {"id": item_id})
        tx.execute(text("INSERT INTO orders (item_id) VALUES (:id)"), {"id": item_id})
`,
				Why: Text{
					"The COMMIT may have happened, and only its answer was lost. The customer then has two orders.",
					"COMMIT 可能已经成功，丢的只是答复。于是顾客有了两张订单。",
				},
				Strategy: "retry-without-key", Scenario: "commit-unanswered", Twin: "retry-with-key",
			},
			{
				Says: Text{
					"Never: the consumer of a queue acknowledges a message before it has committed.",
					"从不：队列的消费者在提交之前就确认了消息。",
				},
				Language: "python",
				Code: `def on_message(channel, method, properties, body):
    channel.basic_ack(method.delivery_tag)
    write_order(body)
`,
				Why: Text{
					"The consumer dies in between, and nobody delivers the message again. Its units are in no order, and later customers hear that all is sold.",
					"消费者死在两步之间，没有人会再投递这条消息。这些库存不在任何订单里，后来的顾客却听到已售罄。",
				},
				Strategy: "ack-first", Scenario: "crash", Twin: "redis-stream",
			},
			{
				Says: Text{
					"The sale takes its lock again: a method with the lock calls another one with it.",
					"销售再次获取自己的锁：带锁的方法调用了另一个带同一把锁的方法。",
				},
				Language: "go",
				Code: `func (s *Shop) Buy(id int) error {
	return s.lock.Do(key(id), func() error { return s.take(id, 1) })
}

func (s *Shop) take(id, n int) error {
	return s.lock.Do(key(id), func() error { return s.write(id, n) })
}
`,
				Why: Text{
					"A lock that is not reentrant waits for itself until its timeout or its lease is over.",
					"不可重入的锁会等自己，直到等待超时或租约到期。",
				},
				Strategy: "owner-checked", Scenario: "nested", Twin: "reentrant",
			},
		},
	},
}
