package commandline

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, test := range []struct {
		name, module string
		settings     []debug.BuildSetting
		want         string
	}{
		{"go install module@version", "v1.2.0", nil, "v1.2.0 go1.26.8"},
		{"a tagged commit", "v1.2.0", []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: "false"}},
			"v1.2.0 commit 0123456789ab go1.26.8"},
		{"a checkout", "v0.0.0-20260801120000-0123456789ab+dirty", []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.modified", Value: "true"}},
			"v0.0.0-20260801120000-0123456789ab+dirty commit 0123456789ab with changes go1.26.8"},
		{"no version control", "(devel)", nil, "unreleased go1.26.8"},
		{"a test", "", nil, "unreleased go1.26.8"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: test.module}, Settings: test.settings}
		if have := versionOf(info); have != test.want {
			t.Errorf("%s: %q, want %q", test.name, have, test.want)
		}
	}
}
