package testserver

import (
	"context"
	"fmt"
)

// await waits until is reports true. What says what is waited for.
func (p *Process) await(ctx context.Context, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := until(ctx, is); err != nil {
		return fmt.Errorf("testserver: %s: not %s: %w", p.Name, what, err)
	}
	return nil
}
