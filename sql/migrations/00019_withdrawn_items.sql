-- +goose Up

-- A withdrawn item has its units in withdrawn, and a stock of 0, so that each statement of a sale refuses it, also
-- those of old shops.
ALTER TABLE items ADD COLUMN withdrawn BIGINT NULL COMMENT 'the units of an item that is not on sale; NULL for one that is';

-- +goose Down
ALTER TABLE items DROP COLUMN withdrawn;
