-- +goose Up

-- For the orders of shops that do not know the column.
ALTER TABLE orders ALTER COLUMN keyed_at SET DEFAULT (UTC_TIMESTAMP(6));

-- Migration 10 is in Go, because it works in steps: it sets keyed_at of the older orders with keys to
-- their created_at.

-- +goose Down
ALTER TABLE orders ALTER COLUMN keyed_at DROP DEFAULT;
