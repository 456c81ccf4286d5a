// Command site makes a static site of a report and of the pages of this repository, as `make site` does:
//
//	go run ./docs/site [-report out/matrix.json] [-to out/site]
//
// A link that leads to nothing is an error.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/site"
)

func main() {
	result := flag.String("report", "out/matrix.json", "the saved result that becomes report.html")
	to := flag.String("to", "out/site", "the folder to write to")
	flag.Parse()
	files, err := write(*result, *to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs/site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files; open %s/index.html\n", files, *to)
}

// write makes the site of the repository in the current folder, and returns the number of its files.
func write(result, to string) (int, error) {
	matrix, err := report.Read(result)
	if err != nil {
		return 0, err
	}
	files, err := site.Build(os.DirFS("."), matrix)
	if err != nil {
		return 0, err
	}
	for name, content := range files {
		name = filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return 0, err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return 0, err
		}
	}
	return len(files), nil
}
