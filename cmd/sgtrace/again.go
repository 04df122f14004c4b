package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/convert/inputs"
)

// selectionArgs are the selection flags as they were given.
func selectionArgs(ctx *cli.Context) (args []string) {
	for _, flag := range selectionFlags() {
		name := flag.Names()[0]
		if !ctx.IsSet(name) {
			continue
		}
		if values := ctx.StringSlice(name); len(values) > 0 {
			for _, v := range values {
				args = append(args, "--"+name, v)
			}
			continue
		}
		args = append(args, "--"+name, fmt.Sprint(ctx.Value(name)))
	}
	return args
}

// shortInputs names a directory instead of many files if these are all that it holds:
// what a shell made of a glob fills the screen.
func shortInputs(args []string) []string {
	const few = 3
	if len(args) <= few {
		return args
	}
	dir := filepath.Dir(args[0])
	if strings.HasPrefix(args[0], "-") || slices.ContainsFunc(args, func(arg string) bool { return filepath.Dir(arg) != dir }) {
		return args
	}
	all, err := inputs.Expand([]string{dir})
	given, err2 := inputs.Expand(args)
	if err != nil || err2 != nil || !slices.Equal(all, given) {
		return args
	}
	return []string{dir}
}
