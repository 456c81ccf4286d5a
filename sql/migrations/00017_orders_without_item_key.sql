-- +goose Up

-- The key had each INSERT of an order take a shared lock on the item's row. A sale has that row anyway. A
-- confirmed reservation does not, and would queue behind every sale of a hot item. Items are never deleted.
ALTER TABLE orders DROP FOREIGN KEY orders_item_fk;

-- +goose Down
ALTER TABLE orders ADD CONSTRAINT orders_item_fk FOREIGN KEY (item_id) REFERENCES items (id);
