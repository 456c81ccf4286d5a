package declared

import (
	"context"
	"fmt"
	"strings"
)

// KnownCommand asks a Redis server for the first of these commands that it knows: its name, empty if it knows
// none. What follows a name says for people which servers know it, as in [Strategy].NeedsCommand. The
// function do sends a command to the server and returns its answer.
func KnownCommand(ctx context.Context, do func(ctx context.Context, command ...any) ([]any, error), commands []string) (string, error) {
	ask := []any{"COMMAND", "INFO"}
	for _, command := range commands {
		ask = append(ask, commandName(command))
	}
	known, err := do(ctx, ask...)
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
