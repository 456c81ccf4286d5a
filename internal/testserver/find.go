package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrMissing: a program that a server needs is not installed.
var ErrMissing = errors.New("not installed")

// elsewhere is where servers are installed outside of the PATH.
var elsewhere = []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/bin", "/usr/local/bin"}

// find looks for the first of several programs on the PATH and elsewhere.
func find(what, install string, programs ...string) (string, error) {
	for _, program := range programs {
		if path, err := exec.LookPath(program); err == nil {
			return path, nil
		}
		for _, dir := range elsewhere {
			path := filepath.Join(dir, program)
			if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is %w: no %s found; %s", what, ErrMissing, strings.Join(programs, " or "), install)
}
