package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// version tells which source this program is built of, and by which Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// versionCommand prints the same line as --version.
func versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print the version, the commit, and the version of Go that built it",
		ArgsUsage: " ",
		Action: func(ctx *cli.Context) error {
			if ctx.Args().Present() {
				return commandline.Usage("version takes no arguments")
			}
			cli.ShowVersion(ctx)
			return nil
		},
	}
}

// versionDate is the day of the commit, as 2026-08-17; "unreleased" if it is not known.
func versionDate() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" && len(s.Value) >= len(time.DateOnly) {
				return s.Value[:len(time.DateOnly)]
			}
		}
	}
	return "unreleased"
}

// versionOf prints the version of the module, the commit, and the version of Go:
// "v1.2.0 commit 0123456789ab go1.26.8". A build by 'go install module@version' knows
// its version and not the commit; one of a checkout without a tag has a version that
// Go made of the commit.
func versionOf(info *debug.BuildInfo) string {
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	words := []string{info.Main.Version}
	if words[0] == "" || words[0] == "(devel)" {
		words[0] = "unreleased"
	}
	if commit := setting["vcs.revision"]; commit != "" {
		words = append(words, "commit", commit[:min(12, len(commit))])
		if setting["vcs.modified"] == "true" {
			words = append(words, "with changes")
		}
	}
	return strings.Join(append(words, info.GoVersion), " ")
}
