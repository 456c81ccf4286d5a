package shop;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/** A shop that sells limited stock, in three ways. WAY says which: read-then-write, watchdog or conditional. */
@SpringBootApplication
@RestController
public class Shop {
    private static final Map<String, Integer> STATUS = Map.of("sold", 201, "sold_out", 409, "busy", 503);

    private final JdbcTemplate db;
    private final TransactionTemplate transaction;
    private final RedissonClient redisson;

    Shop(JdbcTemplate db, TransactionTemplate transaction, RedissonClient redisson) {
        this.db = db;
        this.transaction = transaction;
        this.redisson = redisson;
    }

    public static void main(String[] args) {
        SpringApplication.run(Shop.class, args);
    }

    @Bean(destroyMethod = "shutdown")
    static RedissonClient redisson() {
        Config config = new Config();
        config.setLockWatchdogTimeout(Long.parseLong(System.getenv("LEASE_MS")));
        config.useSingleServer().setAddress(System.getenv("REDIS_URL")).setConnectionMinimumIdleSize(2);
        return Redisson.create(config);
    }

    @GetMapping("/health")
    String health() {
        return "ready";
    }

    record Order(String customer) {}

    @PostMapping("/items/{item}/orders")
    ResponseEntity<Map<String, String>> buy(@PathVariable long item, @RequestBody Order order) throws InterruptedException {
        String answer = switch (System.getenv("WAY")) {
            case "read-then-write" -> transaction.execute(status -> readThenWrite(item, order.customer()));
            case "watchdog" -> watchdog(item, order.customer());
            default -> transaction.execute(status -> conditional(item, order.customer()));
        };
        return ResponseEntity.status(STATUS.get(answer)).body(Map.of("answer", answer));
    }

    /** Broken: two sales can read the same stock. */
    private String readThenWrite(long item, String customer) {
        int stock = db.queryForObject("SELECT stock FROM items WHERE id = ?", Integer.class, item);
        if (stock < 1) {
            return "sold_out";
        }
        db.update("UPDATE items SET stock = ? WHERE id = ?", stock - 1, item);
        return order(item, customer);
    }

    /** Broken where the process stops for longer than the watchdog's timeout: nobody looks at the lock again. */
    private String watchdog(long item, String customer) throws InterruptedException {
        RLock lock = redisson.getLock("lock:" + item);
        if (!lock.tryLock(10, TimeUnit.SECONDS)) {
            return "busy";
        }
        try {
            return transaction.execute(status -> readThenWrite(item, customer));
        } finally {
            if (lock.isHeldByCurrentThread()) {
                lock.unlock();
            }
        }
    }

    /** Mended: one statement looks and takes. */
    private String conditional(long item, String customer) {
        if (db.update("UPDATE items SET stock = stock - 1 WHERE id = ? AND stock >= 1", item) == 0) {
            return "sold_out";
        }
        return order(item, customer);
    }

    private String order(long item, String customer) {
        db.update("INSERT INTO orders (item_id, customer) VALUES (?, ?)", item, customer);
        return "sold";
    }
}
