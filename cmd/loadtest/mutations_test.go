package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const repository = "../.."

// mutation is one of testdata/mutations.diff, which says what its parts are.
type mutation struct {
	name, strategy, equivalent string
	sought                     []sought // each finds it
	hunks                      []hunk
	text                       string // all of it
}

// sought is what finds a mutation, and what it finds.
type sought struct {
	finder []string // and its arguments
	found  string
}

// hunk replaces whole lines of a file.
type hunk struct{ file, old, new string }

// mutations reads the list.
func mutations(t *testing.T) (all []mutation) {
	t.Helper()
	content, err := os.ReadFile("testdata/mutations.diff")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(content), "\n# ")
	for text := range strings.SplitSeq(list, "\n# ") {
		m := mutation{text: text}
		m.name, text, _ = strings.Cut(text, "\n")
		for line := range strings.Lines(text) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.TrimSpace(line) == "":
			case len(m.hunks) > 0 && strings.Contains("-+ ", line[:1]):
				h := &m.hunks[len(m.hunks)-1]
				if line[0] != '+' {
					h.old += line[1:]
				}
				if line[0] != '-' {
					h.new += line[1:]
				}
			case word == "@@":
				m.hunks = append(m.hunks, hunk{file: rest})
			case word == "strategy":
				m.strategy = rest
			case word == "equivalent":
				m.equivalent = rest
			case word == "found":
				finder, found, _ := strings.Cut(rest, " = ")
				m.sought = append(m.sought, sought{strings.Fields(finder), found})
			default:
				t.Fatalf("%s: unexpected line: %s", m.name, line)
			}
		}
		all = append(all, m)
	}
	return all
}

// files returns what the mutation makes of the files of the repository.
func (m mutation) files() (map[string]string, error) {
	files := map[string]string{}
	for _, h := range m.hunks {
		if files[h.file] == "" {
			content, err := os.ReadFile(filepath.Join(repository, h.file))
			if err != nil {
				return nil, err
			}
			files[h.file] = string(content)
		}
		if n := strings.Count("\n"+files[h.file], "\n"+h.old); n != 1 {
			return nil, fmt.Errorf("%s has %d times what is to be changed, want once:\n%s", h.file, n, h.old)
		}
		files[h.file] = strings.Replace(files[h.file], h.old, h.new, 1)
	}
	return files, nil
}

// TestMutationsFit wants each mutation to find what it changes, once, and to be found or explained.
func TestMutationsFit(t *testing.T) {
	for _, m := range mutations(t) {
		if _, err := m.files(); err != nil || len(m.hunks) == 0 {
			t.Errorf("%s: %d changes, %v", m.name, len(m.hunks), err)
		}
		if (m.equivalent == "") == (len(m.sought) == 0) {
			t.Errorf("%s: want what finds it, or why nothing can", m.name)
		}
	}
}
