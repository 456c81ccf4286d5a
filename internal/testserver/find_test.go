package testserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	defer func(before []string) { elsewhere = before }(elsewhere)
	elsewhere = nil
	_, err := Start(t).Redis(t.Context(), RedisOptions{})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("Redis without a redis-server = %v, want what to install", err)
	}
}

// TestAServerIsInstalledByItsOwnScript, also one that is given by a path from here, though it is not on the PATH.
func TestAServerIsInstalledByItsOwnScript(t *testing.T) {
	for _, of := range []string{"bin", "scripts"} {
		dir := t.TempDir()
		t.Chdir(dir)
		for path, script := range map[string]string{"bin/mariadbd": "", of + "/mariadb-install-db": "touch installed"} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv(mysqlEnv, "bin/mariadbd")
		program, err := findMySQL()
		if err != nil || !filepath.IsAbs(program) {
			t.Fatalf("the program is %s, %v", program, err)
		}
		if err := Start(t).initialise(t.Context(), program, dir, "data"); err != nil || !exists("installed") {
			t.Errorf("%s/mariadb-install-db was not run: %v", of, err)
		}
	}
}

// TestTheReaperSaysWhatItLeaves: rm refuses a folder of this name.
func TestTheReaperSaysWhatItLeaves(t *testing.T) {
	r, err := startReaper(t.TempDir() + "/.")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.finish(); err == nil {
		t.Error("the folder is left, and nobody says so")
	}
}
