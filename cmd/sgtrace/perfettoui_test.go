package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/live"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// These tests open a timeline in Perfetto's own UI. They need a build of it, whose folder is
// $SGTRACE_PERFETTO_UI, a trace_processor_shell as its engine, and a browser.

// engineAddr is where the UI looks for an engine, and uiAddr an origin that the engine allows.
const engineAddr, uiAddr = "127.0.0.1:9001", "127.0.0.1:10000"

// A viewer is Perfetto's page in a browser.
type viewer struct {
	t         *testing.T
	browser   *readback.Browser
	processor string
	stop      func() // stops the engine
}

// viewed starts a browser for Perfetto's page, or skips the test.
func viewed(t *testing.T) *viewer {
	t.Helper()
	dist := os.Getenv("SGTRACE_PERFETTO_UI")
	if dist == "" {
		t.Skip("no $SGTRACE_PERFETTO_UI, the folder of a built Perfetto UI: timelines are not opened in it")
	}
	processor := readback.Processor(t)
	path, err := readback.FindChromium()
	if err != nil {
		t.Skip(err)
	}
	server := &http.Server{Addr: uiAddr, Handler: servePage(dist)}
	go server.ListenAndServe()
	b, err := readback.StartChromium(path)
	if err != nil {
		t.Fatal(err)
	}
	v := &viewer{t: t, browser: b, processor: processor, stop: func() {}}
	t.Cleanup(func() {
		v.stop()
		b.Close()
		server.Close()
	})
	return v
}

// servePage serves a built UI, with an empty module in place of its own engine.
func servePage(dist string) http.Handler {
	files := http.FileServer(http.Dir(dist))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".wasm") {
			w.Header().Set("Content-Type", "application/wasm")
			w.Write([]byte("\x00asm\x01\x00\x00\x00"))
			return
		}
		if name, ok := strings.CutPrefix(r.URL.Path, "/assets/"); ok {
			if found, _ := filepath.Glob(filepath.Join(dist, "v*", "assets", filepath.Base(name))); len(found) > 0 {
				http.ServeFile(w, r, found[0])
				return
			}
		}
		files.ServeHTTP(w, r)
	})
}

// open shows a timeline as 'sgtrace open' does, but read by the engine.
func (v *viewer) open(file string) {
	v.t.Helper()
	v.stop()
	ctx, cancel := context.WithCancel(context.Background())
	engine := exec.CommandContext(ctx, v.processor, "server", "http", "--port", "9001", file)
	v.must(engine.Start())
	v.stop = func() { cancel(); engine.Wait() }
	v.until("the engine", func() bool {
		answer, err := http.Get("http://" + engineAddr + "/status")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	opening, err := convert.OpeningOf(file)
	v.must(err)
	link := live.Link("http://"+uiAddr, filepath.Base(file), opening)
	before, rest, _ := strings.Cut(link, "url=")
	_, rest, _ = strings.Cut(rest, "&")
	v.must(v.browser.NewPage())
	v.must(v.browser.Size(1600, 1200))
	v.must(v.browser.Open(before + rest))
	v.until("the page's question", func() (clicked bool) {
		v.must(v.browser.Eval(`(() => { for (const b of document.querySelectorAll('button'))
			if (/yes, use loaded/i.test(b.textContent)) { b.click(); return true } return false })()`, &clicked))
		return clicked
	})
	v.until("the pinned rows", func() bool { return len(v.arranged().Pins) >= len(opening.Pin) })
}

// An arrangement is the part of a trace that the UI shows.
type arrangement struct {
	Pins     []string // names of the pinned rows
	Expanded []string // groups
	Dialogs  []string
}

func (v *viewer) arranged() (a arrangement) {
	v.t.Helper()
	v.must(v.browser.Eval(`(() => {
		const trace = self.app && self.app._activeTrace
		if (!trace) return {}
		const tracks = trace.currentWorkspace || trace.workspaces.currentWorkspace
		const expanded = []
		const walk = node => { for (const c of node.children) { if (!c.collapsed && c.children.length) expanded.push(c.name); walk(c) } }
		walk(tracks)
		return {
			pins: tracks.pinnedTracks.map(n => n.name), expanded,
			dialogs: [...document.querySelectorAll('.pf-modal-dialog, .modal-dialog')].map(e => e.textContent.slice(0, 300)),
		}
	})()`, &a))
	return a
}

func (v *viewer) until(what string, done func() bool) {
	v.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			v.t.Fatalf("waited in vain for %s; the page shows %+v", what, v.arranged())
		}
	}
}

func (v *viewer) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// The UI runs the commands in the link: the rows that matter are pinned, each with a unique name,
// and only the findings and the load are expanded.
func TestViewerArrangesTimeline(t *testing.T) {
	v := viewed(t)
	dir := recordedOf(t, 1, 60)
	file := filepath.Join(dir, "merged.pftrace")
	mustRun(t, dir, "merge . -o merged.pftrace")
	v.open(file)
	have := v.arranged()
	t.Logf("%+v", have)
	opening, err := convert.OpeningOf(file)
	v.must(err)
	names := slices.Compact(slices.Sorted(slices.Values(have.Pins)))
	if len(have.Pins) != len(opening.Pin) || len(names) != len(have.Pins) || len(have.Pins) == 0 {
		t.Errorf("pinned are %q, wanted %q", have.Pins, opening.Pin)
	}
	if want := []string{profile.Findings, profile.Load}; !slices.Equal(have.Expanded, want) {
		t.Errorf("expanded are %q, want %q", have.Expanded, want)
	}
	if len(have.Dialogs) > 0 {
		t.Errorf("the page complains: %q", have.Dialogs)
	}
}

// The actions in each measured frame.
const (
	pointing = `canvas.parentElement.dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: box.x + 300 + 10 * (i % 50), clientY: box.y + 200}))`
	panning  = `trace.timeline.pan((i % 20 < 10 ? 1 : -1) * span / 500)`
)

// frame returns the duration in ms of the median frame while an action is performed in each.
func (v *viewer) frame(action string) (median float64) {
	v.t.Helper()
	v.must(v.browser.Eval(`(async () => {
		const trace = self.app._activeTrace
		const canvas = document.querySelector('canvas')
		const box = canvas.getBoundingClientRect()
		const span = Number(trace.timeline.visibleWindow.duration)
		const times = []
		let last = performance.now()
		for (let i = 0; i < 60; i++) {
			`+action+`
			await new Promise(requestAnimationFrame)
			const now = performance.now()
			if (i >= 20) times.push(now - last)
			last = now
		}
		return times.sort((a, b) => a - b)[times.length / 2]
	})()`, &median))
	return median
}

// A frame for a dump of 25,000 requests takes hardly longer than one for its 200 slowest requests.
// Both are opened twice, in turn, and the better time counts.
func TestViewerDrawsLargeDumpsFast(t *testing.T) {
	v := viewed(t)
	dump := testinput.Shared(t, "data", "otel", "d_big_tp2.jsonl.zst")
	dir := t.TempDir()
	mustRun(t, dir, "convert otel2perfetto "+dump+" -o all.pftrace")
	mustRun(t, dir, "convert otel2perfetto --slowest 200 "+dump+" -o slowest.pftrace")
	best := map[string]float64{}
	for _, file := range []string{"slowest", "all", "slowest", "all"} {
		v.open(filepath.Join(dir, file+".pftrace"))
		time.Sleep(5 * time.Second) // the UI is still loading data for the screen
		for _, action := range []string{pointing, panning} {
			took := v.frame(action)
			if have, ok := best[file+action]; !ok || took < have {
				best[file+action] = took
			}
		}
	}
	const most = 1.3
	for name, action := range map[string]string{"pointing": pointing, "panning": panning} {
		all, slowest := best["all"+action], best["slowest"+action]
		t.Logf("%s: %.1f ms, of the 200 slowest %.1f ms", name, all, slowest)
		if all > most*slowest {
			t.Errorf("%s takes %.2f times a frame of the 200 slowest, want %.1f at most", name, all/slowest, most)
		}
	}
}
