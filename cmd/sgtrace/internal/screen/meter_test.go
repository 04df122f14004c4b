package screen

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// These tests run on the clock of a synctest bubble, which also fails if a goroutine leaks.

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w screen
		m := newMeter(&w, true, Work{Bytes: 4e6})
		m.File("a.json.gz")
		m.Add(1e6)
		time.Sleep(delay - 1)
		synctest.Wait()
		if w.writes != 0 {
			t.Errorf("shown before its time: %q", w.line)
		}
		for _, c := range []struct {
			sleep time.Duration
			add   int
			want  string
		}{
			{1, 0, "1.0 MB of 4.0 MB (25%), 1.0 MB/s, 3s left: a.json.gz"},
			{pause - 1, 1e6, "1.0 MB of 4.0 MB (25%), 1.0 MB/s, 3s left: a.json.gz"},
			{1, 0, "2.0 MB of 4.0 MB (50%), 1.7 MB/s, 1s left: a.json.gz"},
			{4 * pause, 2e6, "4.0 MB of 4.0 MB (100%), 2.0 MB/s: a.json.gz"},
		} {
			m.Add(c.add)
			time.Sleep(c.sleep)
			synctest.Wait()
			if got := w.text(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		}
		if w.writes != 6 {
			t.Errorf("%d updates within a second, want 6", w.writes)
		}
		m.Done()
		if got := w.text(); got != "" || w.column != 0 {
			t.Errorf("left behind: %q, at column %d", got, w.column)
		}
		writes := w.writes
		m.Done()
		m.Add(1)
		time.Sleep(time.Minute)
		if w.writes != writes {
			t.Error("written after Done")
		}
	})
}

// Work after reading is shown at once if the run has already taken a second.
func TestDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, c := range []struct {
			before, after time.Duration // before the work begins, and before the screen is checked
			want          string
		}{
			{delay / 2, delay/2 - 1, ""},
			{0, 1, "drawing, 0s"},
			{0, 2500 * time.Millisecond, "drawing, 2s"},
		} {
			var w screen
			time.Sleep(c.before)
			m := newMeter(&w, true, Work{Doing: "drawing", Began: began})
			time.Sleep(c.after)
			synctest.Wait()
			if got := w.text(); got != c.want {
				t.Errorf("%v after the run began: %q, want %q", time.Since(began), got, c.want)
			}
			m.Done()
			if got := w.text(); got != "" {
				t.Errorf("left behind: %q", got)
			}
		}
	})
}

func TestSilent(t *testing.T) {
	for _, c := range []struct {
		name       string
		isTerminal bool
		takes      time.Duration
	}{
		{"not a terminal", false, time.Minute},
		{"done at once", true, delay / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w screen
				m := newMeter(&w, c.isTerminal, Work{Bytes: 1})
				m.File("a")
				m.Add(1)
				time.Sleep(c.takes)
				m.Done()
				if w.writes != 0 {
					t.Errorf("written: %q", w.line)
				}
			})
		})
	}
}

func TestZeroMeter(t *testing.T) {
	var m Meter
	m.File("a")
	m.Add(1)
	m.Done()
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		read, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 10, time.Second, "0 B of 10 B (0%), 0 B/s"},
		{999, -1, time.Second, "999 B, 999 B/s"},
		{0, 0, time.Second, "0 B, 0 B/s"},
		{1500, -1, 2 * time.Second, "1.5 kB, 750 B/s"},
		{1.24e9, 5.6e9, 4 * time.Second, "1.24 GB of 5.60 GB (22%), 310.0 MB/s, 14s left"},
		{1e6, 1e9, 10 * time.Second, "1.0 MB of 1.00 GB (0%), 100.0 kB/s, 2h46m30s left"},
		{1, 1e18, time.Second, "1 B of 1000000000.00 GB (0%), 1 B/s"},
		{20, 10, time.Second, "20 B of 10 B (100%), 20 B/s"},
	} {
		m := newMeter(nil, false, Work{Bytes: c.total})
		m.Add(int(c.read))
		if got := m.line(c.elapsed); got != c.want {
			t.Errorf("%d of %d in %v:\ngot  %q\nwant %q", c.read, c.total, c.elapsed, got, c.want)
		}
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
		used    int
	}{
		{"abc", 3, "abc", 3},
		{"abcd", 3, "abc", 3},
		{"abc", 0, "", 0},
		{"abc", -1, "", 0},
		{"über", 2, "üb", 2},
		{"日本語", 5, "日本", 4},
		{"a\x1b[2Jb\n\xff", 9, "a?[2Jb?\ufffd", 9},
	} {
		if got, used := fit(c.text, c.columns); got != c.want || used != c.used {
			t.Errorf("fit(%q, %d) = %q, %d; want %q, %d", c.text, c.columns, got, used, c.want, c.used)
		}
	}
}

func TestTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || IsTerminal(&bytes.Buffer{}) {
		t.Error("taken for a terminal")
	}
	if columns(f) != 80 || columns(&bytes.Buffer{}) != 80 {
		t.Error("want 80 columns where the width is unknown")
	}
}

// screen is a terminal line.
type screen struct {
	line   []byte
	column int
	writes int
}

func (s *screen) Write(p []byte) (int, error) {
	s.writes++
	for _, b := range p {
		if b == '\r' {
			s.column = 0
			continue
		}
		if s.column == len(s.line) {
			s.line = append(s.line, ' ')
		}
		s.line[s.column] = b
		s.column++
	}
	return len(p), nil
}

func (s *screen) text() string { return strings.TrimRight(string(s.line), " ") }
