//go:build contract

package shoptest

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGeneratedClients generates clients from the contract, and has them order, list and cancel.
func TestGeneratedClients(t *testing.T) {
	shop := startProduction(t)
	for n := range 3 {
		createItem(t, shop, n)
	}
	arguments := " " + shop.URL + " " + shop.Staff + " 3 1 2"
	for language, commands := range map[string][]string{
		"go":         {"go generate", "go run ." + arguments},
		"typescript": {"npm ci --no-audit --no-fund", "npm run generate", "npm start --silent --" + arguments},
	} {
		t.Run(language, func(t *testing.T) {
			for _, command := range commands {
				words := strings.Fields(command)
				if _, err := exec.LookPath(words[0]); err != nil {
					t.Fatalf("not installed: %s, which the client in %s needs: %v", words[0], language, err)
				}
				run := exec.CommandContext(context.WithoutCancel(t.Context()), words[0], words[1:]...)
				run.Dir = filepath.Join(root, "scripts/contract/client", language)
				out, err := run.CombinedOutput()
				t.Logf("%s\n%s", command, out)
				if err != nil {
					t.Fatalf("%s: %v; the shop's log: %s", command, err, shop.LogTail())
				}
			}
		})
	}
}
