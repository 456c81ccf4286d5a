-- The units that a run sold, compared with its stock. Units that the strategy keeps besides the
-- item's row are added to remaining and lost_updates.
--   sold          units in orders that stand
--   supply        the initial stock, with what was restocked and corrected
--   oversold      units sold beyond the supply
--   lost_updates  units sold that were not deducted from the stock: sold - (supply - remaining);
--                 negative when stock was deducted without an order
SELECT t.initial_stock,
       t.restocked,
       t.corrected,
       t.remaining,
       t.orders,
       t.sold,
       t.cancelled,
       GREATEST(t.sold - (t.initial_stock + t.restocked + t.corrected), 0)         AS oversold,
       t.sold - (t.initial_stock + t.restocked + t.corrected - t.remaining)        AS lost_updates
FROM (SELECT r.initial_stock,
             i.stock                                                              AS remaining,
             o.orders,
             o.sold,
             o.cancelled,
             c.restocked,
             c.corrected
      FROM runs r
               JOIN items i ON i.id = r.item_id
               CROSS JOIN (SELECT COUNT(*)                                                  AS orders,
                                  COALESCE(SUM(IF(cancelled_at IS NULL, quantity, 0)), 0)   AS sold,
                                  COALESCE(SUM(IF(cancelled_at IS NULL, 0, quantity)), 0)   AS cancelled
                           FROM orders
                           WHERE item_id = (SELECT item_id FROM runs WHERE id = ?)) o
               CROSS JOIN (SELECT COALESCE(SUM(IF(action = 'restock', stock_after - stock_before, 0)), 0) AS restocked,
                                  COALESCE(SUM(IF(action = 'correct', stock_after - stock_before, 0)), 0) AS corrected
                           FROM changes
                           WHERE item_id = (SELECT item_id FROM runs WHERE id = ?)) c
      WHERE r.id = ?) t
