-- +goose Up

-- The cancellation of an order has an entry for each line, and one key.
ALTER TABLE changes MODIFY idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL
    COMMENT 'NULL for further lines of a cancelled order';

-- +goose Down
ALTER TABLE changes MODIFY idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL;
