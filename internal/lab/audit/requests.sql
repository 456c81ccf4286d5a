-- The number of orders of each request id, for comparison with the answers that the clients
-- received.
SELECT o.request_id, COUNT(*) AS orders
FROM runs r
         JOIN orders o ON o.item_id = r.item_id
WHERE r.id = ?
GROUP BY o.request_id
