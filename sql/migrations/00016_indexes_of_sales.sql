-- +goose Up

-- Earlier versions made these tables in every database. They are the lab's, which makes them itself. Tables of other
-- programs that have the name of one, and other columns, stay.
SET @labs = (SELECT GROUP_CONCAT(name) FROM (
    SELECT table_name AS name, GROUP_CONCAT(column_name ORDER BY column_name) AS has FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name IN ('reservations', 'stock_buckets', 'stock_checked', 'stock_ledger', 'stock_units')
    GROUP BY table_name
) there WHERE (name, has) IN (
    ('reservations', 'expires_at,id,item_id,quantity'), ('stock_buckets', 'bucket,item_id,stock'), ('stock_checked', 'item_id,stock'),
    ('stock_ledger', 'entry,item_id,part,quantity'), ('stock_units', 'item_id,unit')
));
SET @statement = IF(@labs IS NULL, 'DO 0', CONCAT('DROP TABLE ', @labs));
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
