package main

import (
	"database/sql"
	"net/http"
	"os"

	"github.com/gin-gonic/gin"
	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
)

// asMini has this program be [mini], with the shop's name, address and database in the settings of a shop.
const asMini = "SHOPS_MINI"

// mini serves a shop that sends the two statements of a sale, and does nothing else: no keys, no bounds, no
// metrics, no drain.
func mini(addr, dsn string) error {
	cfg, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return err
	}
	cfg.InterpolateParams, cfg.ClientFoundRows = true, true
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(50)
	db.SetMaxIdleConns(50)
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.GET("/readyz", func(c *gin.Context) { c.Status(http.StatusOK) })
	e.POST("/api/v1/items/:item/orders", func(c *gin.Context) {
		var body struct {
			Quantity int64 `json:"quantity" binding:"min=1"`
		}
		if err := c.ShouldBindJSON(&body); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		tx, err := db.BeginTx(c, nil)
		if err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		defer func() { _ = tx.Rollback() }()
		done, err := tx.ExecContext(c, "UPDATE items SET stock = LAST_INSERT_ID(stock - ?), version = version + 1 WHERE id = ? AND stock >= ?", body.Quantity, c.Param("item"), body.Quantity)
		if err == nil {
			if n, _ := done.RowsAffected(); n == 0 {
				c.Status(http.StatusConflict)
				return
			}
			left, _ := done.LastInsertId()
			_, err = tx.ExecContext(c, "INSERT INTO orders (public_id, item_id, quantity, stock_read, stock_written, strategy, shop, request_id, created_at) VALUES (?, ?, ?, ?, ?, 'mini', ?, '', UTC_TIMESTAMP(6))",
				uuid.Must(uuid.NewV7()).String(), c.Param("item"), body.Quantity, left+body.Quantity, left, os.Getenv("SHOP_NAME"))
		}
		if err != nil || tx.Commit() != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.JSON(http.StatusCreated, gin.H{"quantity": body.Quantity})
	})
	return http.ListenAndServe(addr, e)
}
