-- +goose Up

-- stock is signed on purpose: an UNSIGNED column would turn an oversell into an error and hide it.
CREATE TABLE IF NOT EXISTS items (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name       VARCHAR(100)    NOT NULL,
    stock      BIGINT          NOT NULL,
    version    BIGINT          NOT NULL DEFAULT 0 COMMENT 'grows with every write; what optimistic compares',
    fence      BIGINT          NOT NULL DEFAULT 0 COMMENT 'the highest fencing token seen; what fenced compares',
    created_at DATETIME(6)     NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) ENGINE = InnoDB;

-- An order is the record of a sale. It keeps the stock that the sale read and wrote, so that the
-- audit can find two orders that read the same stock. request_id is not unique: the audit must be
-- able to see a request that was sold twice.
CREATE TABLE IF NOT EXISTS orders (
    id            BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    item_id       BIGINT UNSIGNED NOT NULL,
    quantity      BIGINT          NOT NULL,
    stock_read    BIGINT          NOT NULL,
    stock_written BIGINT          NOT NULL,
    token         BIGINT          NOT NULL DEFAULT 0 COMMENT 'fencing token, 0 where the guard has none',
    strategy      VARCHAR(40)     NOT NULL,
    run           VARCHAR(64)     NOT NULL DEFAULT '',
    shop          VARCHAR(64)     NOT NULL,
    request_id    VARCHAR(64)     NOT NULL,
    created_at    DATETIME(6)     NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    KEY orders_run (run, id),
    KEY orders_item (item_id, id),
    CONSTRAINT orders_item_fk FOREIGN KEY (item_id) REFERENCES items (id)
) ENGINE = InnoDB;

-- A run is one measurement on an item of its own. A late request of one run therefore cannot affect
-- the next run.
CREATE TABLE IF NOT EXISTS runs (
    id            VARCHAR(64)     NOT NULL PRIMARY KEY,
    item_id       BIGINT UNSIGNED NOT NULL,
    strategy      VARCHAR(40)     NOT NULL,
    scenario      VARCHAR(40)     NOT NULL,
    initial_stock BIGINT          NOT NULL,
    created_at    DATETIME(6)     NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    CONSTRAINT runs_item_fk FOREIGN KEY (item_id) REFERENCES items (id)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE runs;
DROP TABLE orders;
DROP TABLE items;
