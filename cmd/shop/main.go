// Command shop sells stock over HTTP. Its settings come from the environment or
// from flags: see shop --help.
package main

import (
	"os"

	"stocklock/internal/shop/program"
)

func main() { os.Exit(program.Main()) }
