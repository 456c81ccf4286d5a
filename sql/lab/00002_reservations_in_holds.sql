-- +goose Up

-- The strategy reservation keeps its units in the shop's own table holds. A table of another program stays, as in
-- the shop's version 16.
SET @labs = (SELECT GROUP_CONCAT(column_name ORDER BY column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'reservations');
SET @statement = IF(@labs = 'expires_at,id,item_id,quantity', 'DROP TABLE reservations', 'DO 0');
PREPARE dropped FROM @statement;
EXECUTE dropped;
DEALLOCATE PREPARE dropped;

-- +goose Down
CREATE TABLE IF NOT EXISTS reservations (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    item_id    BIGINT UNSIGNED NOT NULL,
    quantity   BIGINT          NOT NULL,
    expires_at DATETIME(6)     NOT NULL,
    KEY reservations_item (item_id),
    KEY reservations_expires (expires_at)
) ENGINE = InnoDB;
