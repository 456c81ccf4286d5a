-- +goose Up

-- The age of a key, by the clock of the database; created_at is by the clock of a shop. It is NULL as
-- soon as the order has no key any more, so that its index has only keys. A default would copy the
-- table here; the next migration sets it.
ALTER TABLE orders ADD COLUMN keyed_at DATETIME(6) NULL COMMENT 'when the key was written; NULL without one';

-- +goose Down
ALTER TABLE orders DROP COLUMN keyed_at;
