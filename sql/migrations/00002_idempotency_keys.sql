-- +goose Up

-- A sale's key is written in the transaction of its order. A request that is repeated under the
-- same key fails on this index and can then look up the order.
ALTER TABLE orders
    ADD COLUMN idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'NULL where the client sent none',
    ADD UNIQUE KEY orders_idempotency_key (idempotency_key);

-- +goose Down
ALTER TABLE orders
    DROP KEY orders_idempotency_key,
    DROP COLUMN idempotency_key;
