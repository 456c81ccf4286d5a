//go:build !linux

package testserver

// awaitStopped does nothing: SIGSTOP takes effect soon, and no portable call says when.
func awaitStopped(int) error { return nil }
