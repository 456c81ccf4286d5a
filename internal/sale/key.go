package sale

import "fmt"

// Key returns the name of the lock on an item.
func Key(itemID uint64) string { return fmt.Sprintf(keyForm, itemID) }

const keyForm = "stock:%d"

// ItemOf returns the item that a lock is on.
func ItemOf(key string) (itemID uint64, err error) {
	_, err = fmt.Sscanf(key, keyForm, &itemID)
	return itemID, err
}
