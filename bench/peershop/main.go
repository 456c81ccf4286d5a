//go:build lab

// Command peershop is the program shop with the locks of other libraries. It is given to the load test as
// --shop-binary.
package main

import (
	"os"

	"stocklock/bench/peers"
	"stocklock/internal/shop/program"
)

func main() {
	var settings peers.Settings
	program.Offer(peers.Strategies(&settings)...)
	program.AddFlags(&settings)
	os.Exit(program.Main())
}
