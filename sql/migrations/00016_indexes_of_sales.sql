-- +goose Up

-- Earlier versions made these tables in every database. They are the lab's, which makes them itself.
DROP TABLE IF EXISTS reservations, stock_units, stock_buckets, stock_ledger, stock_checked;

-- A sale with a limit counts the units of the orders that stand, in the index alone. Nobody asks for the
-- orders of a run, or for those of a time without their subject. The column run stays: shops of before write it.
ALTER TABLE orders
    ADD KEY orders_standing (item_id, subject, cancelled_at, quantity),
    DROP KEY orders_item_subject,
    DROP KEY orders_run,
    DROP KEY orders_created_at;

-- +goose Down
ALTER TABLE orders
    ADD KEY orders_created_at (created_at),
    ADD KEY orders_run (run, id),
    ADD KEY orders_item_subject (item_id, subject),
    DROP KEY orders_standing;
