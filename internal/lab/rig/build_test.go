package rig_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"stocklock/internal/lab/rig"
)

// inCheckout changes to a small checkout, and returns a function that changes what its shop says.
func inCheckout(t *testing.T) (shopSays func(word string)) {
	t.Helper()
	script, err := os.ReadFile("../../../scripts/lab-go.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module stocklock\n\ngo 1.26\n")
	write("scripts/lab-go.sh", string(script))
	return func(word string) {
		write("cmd/shop/main.go", "package main\n\nfunc main() { print(\""+word+"\") }\n")
	}
}

// build returns the shop of a new rig.
func build(t *testing.T) (program string) {
	t.Helper()
	r, err := rig.New("")
	if err != nil {
		t.Error(err)
		return ""
	}
	t.Cleanup(func() { r.Close() })
	if program, err = r.ShopBinary(t.Context()); err != nil {
		t.Error(err)
	}
	return program
}

func says(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Error(err)
	}
	return string(out)
}

// TestTheShopOfACheckoutIsItsBin: bin/shop is brought up to date, which does not change what a rig has started.
func TestTheShopOfACheckoutIsItsBin(t *testing.T) {
	shopSays := inCheckout(t)
	if there := rig.ShopBuilt(); there != "" {
		t.Errorf("%s was never built", there)
	}
	shopSays("one")
	first := build(t)
	linked, err := os.Stat(rig.ShopBuilt())
	if err != nil {
		t.Fatal(err)
	}
	if said := says(t, build(t)); said != "one" {
		t.Errorf("the shop says %q, want one", said)
	}
	if now, err := os.Stat(rig.ShopBuilt()); err != nil || !os.SameFile(linked, now) {
		t.Errorf("the second rig has linked the program again: %v", err)
	}
	shopSays("two")
	var building sync.WaitGroup
	for range 4 {
		building.Go(func() {
			if said := says(t, build(t)); said != "two" {
				t.Errorf("after a change a rig has a shop that says %q, want two", said)
			}
		})
	}
	building.Wait()
	if built := says(t, rig.ShopBuilt()); built != "two" {
		t.Errorf("after a change bin/shop says %q, want two", built)
	}
	if said := says(t, first); said != "one" {
		t.Errorf("after a change the first rig has a shop that says %q, want one", said)
	}
}

// TestACheckoutThatCannotBeWrittenTo has its shop built elsewhere.
func TestACheckoutThatCannotBeWrittenTo(t *testing.T) {
	inCheckout(t)("one")
	if err := os.WriteFile("bin", nil, 0o600); err != nil { // no folder can be made
		t.Fatal(err)
	}
	if said := says(t, build(t)); said != "one" {
		t.Errorf("the shop says %q, want one", said)
	}
}
