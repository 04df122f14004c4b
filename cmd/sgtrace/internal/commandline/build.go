package commandline

import (
	_ "embed"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Version returns the version of the program, with its commit and Go version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// Date returns the day of the commit, such as 2026-08-17, or "unreleased" if it is unknown.
func Date() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" && len(s.Value) >= len(time.DateOnly) {
				return s.Value[:len(time.DateOnly)]
			}
		}
	}
	return "unreleased"
}

// versionOf formats the version of the module, the commit, and the Go version: "v1.2.0 commit 0123456789ab
// go1.26.8". A build by 'go install module@version' knows its version but not the commit; a build from a
// checkout without a tag has a version that Go derives from the commit.
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

// Licenses has the license of every module that is linked into the program, each once, below the names and versions of
// the modules that use it. Anyone who distributes the program must distribute them, too. 'make docs' writes them.
//
//go:embed licenses.txt
var Licenses string
