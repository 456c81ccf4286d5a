-- +goose Up

-- An order of several items has a row for each. The first one is the order: it has the public id and
-- the key. Further rows have its id here. An order of before needs no change, and neither does an old
-- shop: it makes orders of one line.
ALTER TABLE orders ADD COLUMN line_of BIGINT UNSIGNED NULL COMMENT 'the id of the order''s first row; NULL for that row';

-- +goose Down
ALTER TABLE orders DROP COLUMN line_of;
