-- +goose Up

-- Shops that do not know the index still clear keys by orders_created_at, which therefore stays.
ALTER TABLE orders ADD KEY orders_keyed_at (keyed_at);

-- +goose Down
ALTER TABLE orders DROP KEY orders_keyed_at;
