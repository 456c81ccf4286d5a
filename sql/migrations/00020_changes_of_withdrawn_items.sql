-- +goose Up

ALTER TABLE changes ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT FALSE COMMENT 'whether the item is withdrawn afterwards';

-- +goose Down
ALTER TABLE changes DROP COLUMN withdrawn;
