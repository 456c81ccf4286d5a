-- +goose Up

-- A hold keeps units for a customer who pays: the API calls it a reservation. Its units have left
-- items.stock, and come back when it ends without an order. Times are the database's, in UTC.
--
-- live_until is the time from which a shop may end it, and NULL when it is over: the indexes have what is
-- live, so nothing that looks for it reads what is over.
CREATE TABLE IF NOT EXISTS holds (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    public_id  CHAR(36)        CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    subject    VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the customer; empty when its data was deleted',
    state      VARCHAR(10)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    steps      INT             NOT NULL DEFAULT 1 COMMENT 'how many entries its history has',
    seconds    INT             NOT NULL COMMENT 'what was asked for',
    created_at DATETIME(6)     NOT NULL,
    held_until DATETIME(6)     NOT NULL,
    extended   BOOLEAN         NOT NULL DEFAULT FALSE,
    pay_until  DATETIME(6)     NULL COMMENT 'the end of the payment window',
    live_until DATETIME(6)     NULL,
    ended_at   DATETIME(6)     NULL,
    ended_by   VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NULL,
    order_id   CHAR(36)        CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the public id of its order',
    reference  VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of its payment',
    instead_of CHAR(36)        CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the ended one for which a payment came late',
    UNIQUE KEY holds_public_id (public_id),
    KEY holds_live (live_until),
    KEY holds_open (subject, live_until),
    KEY holds_subject (subject, created_at),
    KEY holds_ended (ended_at),
    KEY holds_order (order_id),
    CONSTRAINT holds_window CHECK (pay_until > held_until),
    CONSTRAINT holds_agree CHECK (
        (state = 'held' AND pay_until IS NULL AND live_until <=> held_until AND ended_at IS NULL AND ended_by IS NULL AND order_id IS NULL AND reference IS NULL)
        OR (state = 'paying' AND pay_until IS NOT NULL AND live_until IS NOT NULL AND live_until >= pay_until AND ended_at IS NULL AND ended_by IS NULL AND order_id IS NULL AND reference IS NULL)
        OR (state = 'confirmed' AND live_until IS NULL AND ended_at IS NOT NULL AND ended_by IS NOT NULL AND order_id IS NOT NULL AND reference IS NOT NULL)
        OR (state IN ('released', 'expired') AND live_until IS NULL AND ended_at IS NOT NULL AND ended_by IS NOT NULL AND order_id IS NULL AND reference IS NULL))
) ENGINE = InnoDB;

-- Of a line, live_until is that of its hold.
CREATE TABLE IF NOT EXISTS hold_lines (
    hold_id    BIGINT UNSIGNED NOT NULL,
    item_id    BIGINT UNSIGNED NOT NULL,
    quantity   BIGINT          NOT NULL,
    subject    VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    live_until DATETIME(6)     NULL,
    PRIMARY KEY (hold_id, item_id),
    KEY hold_lines_live (item_id, live_until, quantity),
    KEY hold_lines_customer (item_id, subject, live_until, quantity)
) ENGINE = InnoDB;

-- Each transition, the n-th of its hold. A hold whose customer has more time is held as before.
CREATE TABLE IF NOT EXISTS hold_history (
    hold_id    BIGINT UNSIGNED NOT NULL,
    n          INT             NOT NULL,
    was        VARCHAR(10)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'empty for the first',
    becomes    VARCHAR(10)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    at         DATETIME(6)     NOT NULL,
    done_by    VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'a subject, or the shop that ended it',
    reason     VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    request_id VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (hold_id, n),
    CONSTRAINT hold_history_pairs CHECK (CONCAT(was, '>', becomes) IN (
        '>held', '>confirmed', 'held>held', 'held>paying', 'held>confirmed', 'paying>confirmed',
        'held>released', 'paying>released', 'held>expired', 'paying>expired'))
) ENGINE = InnoDB;

-- The idempotency keys of holds. They are cleared as those of orders are.
CREATE TABLE IF NOT EXISTS hold_keys (
    subject         VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    hold            CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'its public id',
    keyed_at        DATETIME(6) NOT NULL,
    PRIMARY KEY (subject, idempotency_key),
    KEY hold_keys_keyed_at (keyed_at)
) ENGINE = InnoDB;

-- A customer's holds are made one after the other, under the lock of this row: so none is over the bound.
CREATE TABLE IF NOT EXISTS hold_customers (
    subject VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
) ENGINE = InnoDB;

-- What became of money. A reference stays for ever, whatever becomes of its hold.
CREATE TABLE IF NOT EXISTS payments (
    reference       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    hold            CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the public id of the one that it was for',
    paid            CHAR(36)    CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the public id of the one that it has confirmed',
    state           VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason          VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'why it is to be returned; empty where it was taken',
    recorded_at     DATETIME(6) NOT NULL,
    recorded_by     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    returned_at     DATETIME(6) NULL,
    returned_by     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of its return',
    KEY payments_hold (hold),
    KEY payments_state (state),
    CONSTRAINT payments_agree CHECK (
        (state = 'taken' AND paid IS NOT NULL AND reason = '' AND returned_at IS NULL)
        OR (state = 'to-return' AND reason <> '' AND returned_at IS NULL)
        OR (state = 'returned' AND returned_at IS NOT NULL AND returned_by IS NOT NULL AND idempotency_key IS NOT NULL))
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE payments;
DROP TABLE hold_customers;
DROP TABLE hold_keys;
DROP TABLE hold_history;
DROP TABLE hold_lines;
DROP TABLE holds;
