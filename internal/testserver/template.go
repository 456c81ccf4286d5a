package testserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A template is the data folder of a MySQL server that was never started. To make one takes seconds,
// to copy one does not. So it is made once for each program and version, and kept below the user's
// folder for caches.
//
// Templates are made and removed under a lock on that folder, and copied under a shared one. The
// kernel releases the locks of a process that dies. A template gets its name when it is complete, and
// what a dead process has left incomplete is removed by the next one that makes a template.
type template struct {
	path  string
	lock  *os.File
	alone bool // the lock is not shared: there was no template
}

// dataFolder makes the data folder of a server, from a template if it can.
func (g *Group) dataFolder(ctx context.Context, program, dir, data string) error {
	t, err := openTemplate(ctx, program)
	if err == nil {
		defer t.lock.Close() // which releases it
		if !t.alone && copyFolder(t.path, data, false) == nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// A server can do without a template, whatever is wrong with it or with the cache.
	if err := os.RemoveAll(data); err != nil {
		return fmt.Errorf("testserver: %w", err)
	}
	if err := g.initialise(ctx, program, dir, data); err != nil {
		return err
	}
	if err == nil && t.alone {
		t.keep(data)
	}
	return nil
}

// openTemplate returns the template of a program, locked.
func openTemplate(ctx context.Context, program string) (*template, error) {
	version, err := versionOf(ctx, program)
	if err != nil {
		return nil, err
	}
	cache, lock, err := openCache()
	if err != nil {
		return nil, err
	}
	t := &template{path: filepath.Join(cache, filepath.Base(program)+"-"+digest([]byte(program))+"-"+digest(version)), lock: lock}
	if err = lockFile(ctx, lock, syscall.LOCK_SH); err == nil && !exists(t.path) {
		err = lockFile(ctx, lock, syscall.LOCK_EX)
		t.alone = !exists(t.path)
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return t, nil
}

// versions are what programs have said of their version, by their path and the time of their last change.
var versions sync.Map

func versionOf(ctx context.Context, program string) ([]byte, error) {
	info, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	of := struct {
		path    string
		changed time.Time
	}{program, info.ModTime()}
	if version, known := versions.Load(of); known {
		return version.([]byte), nil
	}
	version, err := exec.CommandContext(ctx, program, "--no-defaults", "--version").Output()
	if err == nil {
		versions.Store(of, version)
	}
	return version, err
}

// openCache returns the project's folder below the user's folder for caches, and a file in it to lock.
func openCache() (cache string, lock *os.File, err error) {
	if cache, err = os.UserCacheDir(); err != nil {
		return "", nil, err
	}
	cache = filepath.Join(cache, "stocklock")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", nil, err
	}
	lock, err = os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	return cache, lock, err
}

// Alone calls use while no other process uses a folder so. It makes the folder if it is missing.
func Alone(ctx context.Context, folder string, use func() error) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer lock.Close() // which releases it
	if err := lockFile(ctx, lock, syscall.LOCK_EX); err != nil {
		return err
	}
	return use()
}

const digestSize = 12

func digest(of []byte) string { return fmt.Sprintf("%x", sha256.Sum256(of))[:digestSize] }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// lockFile waits for a lock on f, which a lock that f has becomes.
func lockFile(ctx context.Context, f *os.File, how int) error {
	var failed error
	err := until(ctx, func() (bool, error) {
		failed = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		return !errors.Is(failed, syscall.EWOULDBLOCK) && !errors.Is(failed, syscall.EINTR), nil
	})
	return cmp.Or(err, failed)
}

// keep makes a copy of data the template, and removes the program's older ones. If it fails, the next
// server tries it.
func (t *template) keep(data string) {
	cache, name := filepath.Split(t.path)
	making := filepath.Join(cache, "incomplete-")
	for _, of := range []string{making, filepath.Join(cache, name[:len(name)-digestSize])} {
		old, _ := filepath.Glob(of + "*") // the error is that of a bad pattern: then nothing is removed
		for _, path := range old {
			os.RemoveAll(path)
		}
	}
	making += RandomHex(4)
	if copyFolder(data, making, true) != nil || os.Rename(making, t.path) != nil {
		os.RemoveAll(making)
	}
}

// copyFolder copies a folder of folders and plain files. With lasting, the copy outlives a crash of
// the machine.
func copyFolder(from, to string, lasting bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, inner)
		switch {
		case entry.IsDir():
			return os.Mkdir(target, 0o700)
		case !entry.Type().IsRegular():
			return fmt.Errorf("testserver: %s is neither a file nor a folder", path)
		}
		return copyFile(path, target, lasting)
	})
}

// copyFile leaves holes where a file has nothing but zeros, as most of a new redo log. Holes of the file are not read.
func copyFile(from, to string, lasting bool) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	buffer, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); ; {
		// On a file system without holes, all is data.
		if at, err = in.Seek(at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
			break
		} else if err != nil {
			return err
		}
		n, err := io.ReadFull(in, buffer)
		if n > 0 && !bytes.Equal(buffer[:n], zeros[:n]) {
			if _, err := out.WriteAt(buffer[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if lasting {
		return out.Sync()
	}
	return nil
}
