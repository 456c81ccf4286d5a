package redislock

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheLockIsSmall: a reader can follow what is copied in an hour. Comments, blank lines, tests and
// Inspect are not counted.
func TestTheLockIsSmall(t *testing.T) {
	for pattern, c := range map[string]struct {
		count func(source []byte) int
		most  int
	}{
		"*.go":  {goLines, 1550},
		"*.lua": {luaLines, 220},
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		sum := 0
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "inspect.") {
				continue
			}
			source, err := os.ReadFile(file)
			must(t, err)
			sum += c.count(source)
		}
		if t.Logf("%s: %d lines", pattern, sum); sum > c.most {
			t.Errorf("%s: %d lines, want %d at most: see what can go", pattern, sum, c.most)
		}
	}
}

// goLines are those with a token on them.
func goLines(source []byte) int {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile("", -1, len(source)), source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		for i := range 1 + strings.Count(text, "\n") {
			lines[set.Position(pos).Line+i] = true
		}
	}
}

// luaLines are those with more than a comment on them. The scripts have no long strings or comments.
func luaLines(source []byte) (n int) {
	for line := range strings.Lines(string(source)) {
		code, _, _ := strings.Cut(line, "--")
		if strings.TrimSpace(code) != "" {
			n++
		}
	}
	return n
}
