-- The units that a run sold, compared with its initial stock. Units that the strategy keeps besides
-- the item's row are added to remaining and lost_updates.
--   oversold      units in orders beyond the initial stock
--   lost_updates  units sold that were not deducted from the stock:
--                 sold - (initial - remaining); negative when stock was deducted without an order
SELECT r.initial_stock                                                  AS initial_stock,
       i.stock                                                          AS remaining,
       COUNT(o.id)                                                      AS orders,
       COALESCE(SUM(o.quantity), 0)                                     AS sold,
       GREATEST(COALESCE(SUM(o.quantity), 0) - r.initial_stock, 0)      AS oversold,
       COALESCE(SUM(o.quantity), 0) - (r.initial_stock - i.stock)       AS lost_updates
FROM runs r
         JOIN items i ON i.id = r.item_id
         LEFT JOIN orders o ON o.item_id = r.item_id
WHERE r.id = ?
GROUP BY r.id, r.initial_stock, i.stock
