package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"stocklock/internal/testserver"
)

// ShopAt returns the absolute path of a program, or why it cannot be started.
func ShopAt(path string) (string, error) {
	absolute, err := ProgramAt(path)
	if err != nil {
		return "", fmt.Errorf("the shop cannot be started: %w", err)
	}
	return absolute, nil
}

// ProgramAt returns the absolute path of a program, or why it cannot be started.
func ProgramAt(path string) (string, error) {
	absolute, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	return filepath.Abs(absolute)
}

// ShopBinary brings bin/shop up to date, in the checkout that the working directory is in, and returns
// the path of a copy, which a later build does not change. Without a checkout, as in a container, it
// returns the program shop beside this one.
func (r *Rig) ShopBinary(ctx context.Context) (string, error) {
	if r.given != "" {
		return r.given, nil
	}
	r.buildOnce.Do(func() { r.binary, r.buildErr = r.buildShop(ctx) })
	return r.binary, r.buildErr
}

func (r *Rig) buildShop(ctx context.Context) (string, error) {
	beside, err := ShopBeside()
	if err != nil || beside != "" {
		return beside, err
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	bin, program := filepath.Join(root, "bin"), filepath.Join(r.Dir(), "shop")
	err = testserver.Alone(ctx, bin, func() error {
		shop := filepath.Join(bin, "shop")
		if err := r.Run(GoCommand(ctx, root, "build", "-o", shop, "./cmd/shop")); err != nil {
			return err
		}
		if os.Link(shop, program) == nil {
			return nil
		}
		return r.Run(exec.CommandContext(ctx, "cp", shop, program)) // to another file system
	})
	if err != nil && ctx.Err() == nil { // it can do without, whatever is wrong with the folder
		err = r.Run(GoCommand(ctx, root, "build", "-o", program, "./cmd/shop"))
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("rig: build the shop: %w", err)
	}
	return program, nil
}

// GoCommand is the go command in a checkout, with the flags by which the lab is built there. It removes what it has in the
// folder for temporary files only where it is asked to end.
func GoCommand(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "scripts/lab-go.sh", args...)
	cmd.Dir = root
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	return cmd
}

// Overlay writes the file for the flag -overlay of the go command into a folder. Files of the checkout, named from its
// root, are replaced or added.
func Overlay(dir, root string, files map[string]string) (overlay string, err error) {
	root, err = filepath.Abs(root)
	replace := map[string]string{}
	for file, content := range files {
		laid := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		replace[filepath.Join(root, file)] = laid
		err = errors.Join(err, os.WriteFile(laid, []byte(content), 0o600))
	}
	list, malformed := json.Marshal(map[string]any{"Replace": replace})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err, malformed, os.WriteFile(overlay, list, 0o600))
}

// ShopBuilt returns the path of bin/shop as it was built last, in the checkout that the working
// directory is in. It is empty if there is none.
func ShopBuilt() string {
	root, err := ModuleRoot()
	if err != nil {
		return ""
	}
	program, _ := ProgramAt(filepath.Join(root, "bin", "shop")) // empty where there is none
	return program
}

// ShopBeside returns the program shop beside this one where there is no checkout to build it from, as
// in a container. In a checkout it returns nothing.
func ShopBeside() (string, error) {
	_, noCheckout := ModuleRoot()
	if noCheckout == nil {
		return "", nil
	}
	self, err := os.Executable()
	beside := filepath.Join(filepath.Dir(self), "shop")
	if _, missing := os.Stat(beside); err != nil || missing != nil {
		return "", fmt.Errorf("rig: no shop to start: %w, and no program shop beside this one", noCheckout)
	}
	return beside, nil
}

// ModuleRoot is the folder of the checkout that the working directory is in.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(mod, []byte("module stocklock\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not in a checkout of stocklock")
		}
		dir = parent
	}
}
