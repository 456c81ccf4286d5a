-- +goose Up

-- An order that was cancelled stays, and its units are back in the stock. Shops that do not know the
-- column can sell at the same time.
ALTER TABLE orders ADD COLUMN cancelled_at DATETIME(6) NULL COMMENT 'NULL for an order that stands';

-- +goose Down
ALTER TABLE orders DROP COLUMN cancelled_at;
