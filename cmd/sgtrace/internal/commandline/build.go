package commandline

import (
	_ "embed"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Version tells from which source this program is built, and by which Go.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// Date returns the day of the commit, as 2026-08-17; "unreleased" if it is not known.
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

// Licenses has the license of every module that is linked into the program, each once, below the names and versions of the modules
// that have it. Whoever distributes the program must distribute them, too. 'make docs' writes them.
//
//go:embed licenses.txt
var Licenses string
