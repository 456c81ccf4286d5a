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

-- +goose Down
DROP TABLE reservations;
DROP TABLE stock_units;
DROP TABLE stock_buckets;
