-- +goose Up

-- public_id cannot be guessed, so that an order can be read by its customer alone; orders made before
-- have none. subject is the customer, where a gateway names one. The new unique key stands beside the
-- old one, which the next migration drops: shops of both versions can sell at the same time.
ALTER TABLE orders
    ADD COLUMN public_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'UUIDv7; NULL for orders made before there were such ids',
    ADD COLUMN subject VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'the customer, empty where no gateway names one',
    ADD UNIQUE KEY orders_public_id (public_id),
    ADD UNIQUE KEY orders_key_subject (idempotency_key, subject),
    ADD KEY orders_created_at (created_at);

-- +goose Down
ALTER TABLE orders
    DROP KEY orders_created_at,
    DROP KEY orders_key_subject,
    DROP KEY orders_public_id,
    DROP COLUMN subject,
    DROP COLUMN public_id;
