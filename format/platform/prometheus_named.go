package platform

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// clockIn matches the time in the name of a saved file: a date, a time of day, or seconds since 1970.
var clockIn = lazyregexp.New(`[-_.T ]?(?:20\d\d[-_]?\d\d[-_]?\d\d(?:[-_.T ]?\d\d[-_:]?\d\d(?:[-_:]?\d\d)?)?Z?|1[5-9]\d{8}(?:\d{3})?|\d{6}|\d\d[-_:]\d\d[-_:]\d\d)$`)

// speaker returns the name of a server whose metrics were saved repeatedly: the name of the file or of its directory
// without the time; "" if nothing remains, as then the files may be from any server.
func speaker(path string) string {
	base := bareName(path)
	switch name := clockIn.ReplaceAllString(base, ""); name {
	case base:
		return ""
	case "":
		return filepath.Base(filepath.Dir(path))
	default:
		return name
	}
}

// pathOfSpeaker returns the speaker of a file with its directories, which distinguish servers with equal file names: names
// are shortened to their differences when all files are read. A generic file name adds nothing to a directory.
func pathOfSpeaker(path string) string {
	name := speaker(path)
	dir := filepath.ToSlash(filepath.Dir(path))
	for dir != "." && clockIn.ReplaceAllString(filepath.Base(dir), "") == "" { // a directory per day
		dir = filepath.ToSlash(filepath.Dir(dir))
	}
	switch {
	case name == "" || dir == ".":
		return name
	case name == filepath.Base(dir) || ofAnyServer.MatchString(name):
		return dir
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// ofAnyServer matches generic names of files with metrics.
var ofAnyServer = lazyregexp.New(`^(?:metrics?|scrapes?|prom|prometheus)$`)

// bareName returns the name of a file without its extension.
func bareName(path string) string {
	base := filepath.Base(path)
	if i := strings.LastIndexByte(base, '.'); i > 0 {
		return base[:i]
	}
	return base
}

// namedAt returns the time in the name of a file of metrics, or else of its directory, if it says a day and a time of day. local means that its
// zone is unknown. A time long after the file was written is not when it was saved.
func namedAt(path string, written trace.Time) (at trace.Time, local, ok bool) {
	const zones = trace.Time(14 * time.Hour) // the most that a clock is ahead of UTC
	dir := filepath.Dir(path)
	for _, name := range []string{bareName(path), filepath.Base(dir) + "T" + strings.Trim(clockIn.FindString(bareName(path)), "-_.T "), filepath.Base(dir)} {
		if at, local, ok = clockOf(name); ok && (written == 0 || at <= written+zones) {
			return at, local, true
		}
	}
	return 0, false, false
}

// clockOf parses the time at the end of a name.
func clockOf(name string) (at trace.Time, local, ok bool) {
	digits, utc := strings.CutSuffix(clockIn.FindString(name), "Z")
	digits = strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, digits)
	switch len(digits) {
	case len("1787000000"), len("1787000000123"):
		if digits[0] == '1' {
			at, _, ok = stampOf(digits)
			return at, false, ok
		}
	case len("20260817205320"), len("202608172053"):
		if t, err := time.Parse("20060102150405", (digits + "00")[:14]); err == nil {
			return trace.Time(t.UnixNano()), !utc, true
		}
	}
	return 0, false, false
}
