package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/stock"
)

// Probe checks a shop that was given by address: it must be ready, obey the lab's
// headers, and sell by the strategy from the database that store looks at. It buys
// one unit of an item made for that.
func Probe(ctx context.Context, url, strategy string, store *stock.Store) error {
	run, err := audit.Start(ctx, store, audit.Run{
		ID: "probe-" + time.Now().UTC().Format("150405.000000000"), Strategy: strategy, Scenario: "probe", InitialStock: 1,
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/api/v1/items/%d/orders", url, run.ItemID),
		bytes.NewBufferString(requestBody))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Lab-Strategy", strategy)
	request.Header.Set("X-Lab-Run", run.ID)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return err
	}
	var order stock.Order
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusConflict: // none there, or another one
		return errors.New("the shop does not know the item that was just made: it sells from another database than --mysql")
	case answer.StatusCode != http.StatusCreated:
		return fmt.Errorf("a sale was answered with %s: %s", answer.Status, detail(body))
	case json.Unmarshal(body, &order) != nil || order.Run != run.ID || order.Strategy != strategy:
		return errors.New("the shop does not obey the lab's headers: start it with SHOP_LAB=true")
	}
	return nil
}

// detail is what a problem says to people; of anything else it is the whole.
func detail(body []byte) string {
	var problem struct{ Detail string }
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		return problem.Detail
	}
	return string(bytes.TrimSpace(body))
}
