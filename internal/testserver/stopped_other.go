//go:build !linux

package testserver

// awaitStopped and awaitGroup do nothing: a signal takes effect soon, and no portable call says when.
func awaitStopped(int) error { return nil }

func awaitGroup(int, string) error { return nil }
