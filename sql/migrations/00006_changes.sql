-- +goose Up

-- A change is what somebody with the right to do so did to an item. It is written in the transaction
-- of what it describes, and kept for ever: its key is, too. A cancelled order has one entry.
CREATE TABLE IF NOT EXISTS changes (
    id              BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    action          VARCHAR(20)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'create, rename, restock, correct or cancel',
    item_id         BIGINT UNSIGNED NOT NULL,
    order_id        BIGINT UNSIGNED NULL COMMENT 'the cancelled order',
    subject         VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'who, as the gateway says',
    idempotency_key VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    name_before     VARCHAR(100)    CHARACTER SET utf8mb4 NOT NULL COMMENT 'empty for a new item',
    name_after      VARCHAR(100)    CHARACTER SET utf8mb4 NOT NULL,
    stock_before    BIGINT          NOT NULL COMMENT '0 for a new item',
    stock_after     BIGINT          NOT NULL,
    version         BIGINT          NOT NULL COMMENT 'of the item afterwards',
    shop            VARCHAR(64)     NOT NULL,
    request_id      VARCHAR(64)     NOT NULL,
    created_at      DATETIME(6)     NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    UNIQUE KEY changes_key_subject (idempotency_key, subject),
    UNIQUE KEY changes_order (order_id),
    KEY changes_item (item_id, id),
    CONSTRAINT changes_item_fk FOREIGN KEY (item_id) REFERENCES items (id)
) ENGINE = InnoDB;

-- Staff may give an item any name. Where the database has another character set, this copies the table
-- of items; otherwise it does nothing.
ALTER TABLE items MODIFY name VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL;

-- +goose Down
DROP TABLE changes;
