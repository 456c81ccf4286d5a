-- The number of orders beyond the first one of each request id.
SELECT COALESCE(SUM(d.extra), 0) AS duplicates
FROM (SELECT COUNT(*) - 1 AS extra
      FROM runs r
               JOIN orders o ON o.item_id = r.item_id
      WHERE r.id = ?
      GROUP BY o.request_id
      HAVING COUNT(*) > 1) d
