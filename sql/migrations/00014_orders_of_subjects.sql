-- +goose Up

-- orders_subject lists the orders of a customer, and finds the further rows of an order.
-- orders_item_subject counts what a customer has of an item. It takes the place of orders_item, so that
-- a sale writes one more index and not two.
ALTER TABLE orders
    ADD KEY orders_subject (subject, line_of, created_at),
    ADD KEY orders_item_subject (item_id, subject),
    DROP KEY orders_item;

-- +goose Down
ALTER TABLE orders
    ADD KEY orders_item (item_id, id),
    DROP KEY orders_item_subject,
    DROP KEY orders_subject;
