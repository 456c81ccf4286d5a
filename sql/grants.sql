-- What the shop's user may do, and nothing else. Create the user before, and run `shop migrate`
-- before: rights on a table need the table. The client must have the shop's database selected.
GRANT SELECT ON * TO shop;
GRANT UPDATE ON items TO shop;
GRANT INSERT ON orders TO shop;
GRANT UPDATE (idempotency_key, keyed_at) ON orders TO shop; -- keys are cleared after SHOP_KEY_TTL
-- With SHOP_STAFF_ADDR, and all but the first with SHOP_CANCEL_WITHIN:
GRANT INSERT ON items TO shop;
GRANT UPDATE (cancelled_at) ON orders TO shop;
GRANT INSERT ON changes TO shop; -- no shop may change or delete an entry
-- With SHOP_RESERVATIONS:
GRANT INSERT, UPDATE ON holds TO shop;
GRANT INSERT, UPDATE, DELETE ON hold_lines TO shop;
GRANT INSERT, DELETE ON hold_history TO shop; -- entries are deleted after SHOP_RESERVATIONS_KEPT, and none is changed
GRANT INSERT, DELETE ON hold_keys TO shop;
GRANT INSERT, UPDATE ON hold_customers TO shop;
GRANT INSERT, UPDATE ON payments TO shop;
