//go:build unix

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// mkfifo makes a named pipe, whose reader waits for a writer.
func mkfifo(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o600))
}

// waitopen waits until somebody reads from a named pipe, and keeps it open so that the reader sees
// no end of file.
func waitopen(ts *testscript.TestScript, _ bool, args []string) {
	for range 500 {
		f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			ts.Defer(func() { f.Close() })
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("nobody reads from %s", args[0])
}
