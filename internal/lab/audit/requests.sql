-- The request ids that have an order, to be held against the answers that the
-- clients saw.
SELECT o.request_id, COUNT(*) AS orders
FROM runs r
         JOIN orders o ON o.item_id = r.item_id
WHERE r.id = ?
GROUP BY o.request_id
