-- +goose Up

-- Two subjects may use the same key: orders_key_subject alone decides.
ALTER TABLE orders DROP KEY orders_idempotency_key;

-- +goose Down
ALTER TABLE orders ADD UNIQUE KEY orders_idempotency_key (idempotency_key);
