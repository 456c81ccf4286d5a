package declared

import (
	"context"
	"fmt"
	"strings"
)

// KnownCommand asks a Redis server, by a client of any kind, for the first of these commands that it
// knows: its name, empty if it knows none. What follows a name says for people which servers know it,
// as in [Strategy].NeedsCommand.
func KnownCommand[R interface{ Slice() ([]any, error) }](ctx context.Context, server interface {
	Do(ctx context.Context, command ...any) R
}, commands []string) (string, error) {
	ask := []any{"COMMAND", "INFO"}
	for _, command := range commands {
		ask = append(ask, commandName(command))
	}
	known, err := server.Do(ctx, ask...).Slice()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its commands: %w", err)
	}
	for i, about := range known {
		if about != nil && i < len(commands) {
			return commandName(commands[i]), nil
		}
	}
	return "", nil
}

func commandName(command string) string {
	name, _, _ := strings.Cut(command, " ")
	return name
}
