//go:build !unix

package main

import "github.com/rogpeppe/go-internal/testscript"

func mkfifo(ts *testscript.TestScript, _ bool, _ []string)   { ts.Fatalf("no named pipes") }
func waitopen(ts *testscript.TestScript, _ bool, _ []string) { ts.Fatalf("no named pipes") }
