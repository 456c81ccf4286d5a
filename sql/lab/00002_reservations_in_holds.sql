-- +goose Up

-- The strategy reservation keeps its units in the shop's own table holds.
DROP TABLE IF EXISTS reservations;

-- +goose Down
CREATE TABLE IF NOT EXISTS reservations (
    id         BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
    item_id    BIGINT UNSIGNED NOT NULL,
    quantity   BIGINT          NOT NULL,
    expires_at DATETIME(6)     NOT NULL,
    KEY reservations_item (item_id),
    KEY reservations_expires (expires_at)
) ENGINE = InnoDB;
