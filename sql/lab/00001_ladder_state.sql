-- +goose Up

-- What the strategies of the ladder keep besides an item's row. A shop in production uses none of
-- these tables.

-- buckets: an item's stock, split over rows.
CREATE TABLE IF NOT EXISTS stock_buckets (
    item_id BIGINT UNSIGNED NOT NULL,
    bucket  INT             NOT NULL,
    stock   BIGINT          NOT NULL,
    PRIMARY KEY (item_id, bucket),
    CONSTRAINT stock_buckets_item_fk FOREIGN KEY (item_id) REFERENCES items (id)
) ENGINE = InnoDB;

-- skip-locked: one row for each unit that can be sold at once. The other units are in items.stock.
CREATE TABLE IF NOT EXISTS stock_units (
    item_id BIGINT UNSIGNED NOT NULL,
    unit    BIGINT          NOT NULL COMMENT 'the stock before this unit was moved out of items.stock',
    PRIMARY KEY (item_id, unit)
) ENGINE = InnoDB;

-- reservation: units that are held for a sale. They are no longer in items.stock.
CREATE TABLE IF NOT EXISTS reservations (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    item_id    BIGINT UNSIGNED NOT NULL,
    quantity   BIGINT          NOT NULL,
    expires_at DATETIME(6)     NOT NULL,
    KEY reservations_item (item_id),
    KEY reservations_expires (expires_at)
) ENGINE = InnoDB;

-- ledger: what came to an item and what went, one row each. The units left are the sum of part 1. The
-- other parts have rows of 0 units before and after it: where a transaction locks what it sums up, and
-- the gaps around it, the locks end there. Without them, sales of one item would wait for those of the
-- next one, and a new item for both. Entry has no AUTO_INCREMENT: an INSERT that waits for a gap keeps the
-- lock of that, and a deadlock with it is error 1467, which does not say that it was one.
CREATE TABLE IF NOT EXISTS stock_ledger (
    item_id  BIGINT UNSIGNED NOT NULL,
    part     TINYINT         NOT NULL DEFAULT 1,
    entry    CHAR(36)        NOT NULL COMMENT 'the public id of an order, or any UUID',
    quantity BIGINT          NOT NULL,
    PRIMARY KEY (item_id, part, entry)
) ENGINE = InnoDB;

-- check-constraint: a stock that the database keeps at 0 or above.
CREATE TABLE IF NOT EXISTS stock_checked (
    item_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
    stock   BIGINT          NOT NULL,
    CONSTRAINT stock_checked_sold_out CHECK (stock >= 0)
) ENGINE = InnoDB;

-- +goose Down
DROP TABLE stock_checked;
DROP TABLE stock_ledger;
DROP TABLE reservations;
DROP TABLE stock_units;
DROP TABLE stock_buckets;
