-- +goose Up

-- Earlier versions made these tables in every database. They are the lab's, which makes them itself. A table of another
-- program that is called reservations stays.
DROP TABLE IF EXISTS stock_units, stock_buckets, stock_ledger, stock_checked;
SET @labs = (SELECT GROUP_CONCAT(column_name ORDER BY column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'reservations');
SET @statement = IF(@labs = 'expires_at,id,item_id,quantity', 'DROP TABLE reservations', 'DO 0');
PREPARE dropped FROM @statement;
EXECUTE dropped;
DEALLOCATE PREPARE dropped;

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
