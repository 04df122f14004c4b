package live

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Addr is where the UI may fetch from. It has the port of trace_processor's own server; the UI's content
// security policy allows no other.
const Addr = "127.0.0.1:9001"

// UI is the address of the public Perfetto UI.
const UI = "https://ui.perfetto.dev"

// ServeOptions say to whom and how long a file is served.
type ServeOptions struct {
	UI   string        // address of the UI, such as [UI]
	Idle time.Duration // Serve ends if nobody has fetched the file for this long; 0 is never
}

// Origin returns the origin of a UI, as a browser sends it: its address without the path.
func Origin(ui string) (string, error) {
	u, err := url.Parse(ui)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q: want the address of a Perfetto UI, such as %s", ui, UI)
	}
	return u.Scheme + "://" + u.Host, nil
}

// Listen listens at [Addr].
func Listen() (net.Listener, error) {
	ln, err := net.Listen("tcp4", Addr)
	if err != nil {
		return nil, fmt.Errorf("%w; the Perfetto UI can fetch from no other port: stop the program that uses it "+
			"(another sgtrace open, or trace_processor) and try again", err)
	}
	return ln, nil
}

// Serve serves the regular file at path, under its base name, on ln, until nobody has fetched it for a
// while. It closes ln. If ctx ends first, Serve returns ctx's cause.
func Serve(ctx context.Context, path string, ln net.Listener, opt ServeOptions) error {
	defer ln.Close()
	origin, err := Origin(opt.UI)
	if err != nil {
		return err
	}
	f, size, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	h := &handler{
		host:   ln.Addr().String(),
		origin: origin,
		path:   "/" + filepath.Base(path),
		file:   f,
		size:   size,
	}
	srv := &http.Server{
		Handler:                      h,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            10 * time.Second,
		ErrorLog:                     log.New(io.Discard, "", 0), // it would only report clients that hang up
	}
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Serve(ln) }()
	select {
	case err := <-stopped:
		srv.Close()
		return fmt.Errorf("serving %s: %w", path, err)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-h.idle(ctx, opt.Idle):
	}
	srv.Close()
	<-stopped
	return err
}

// idle returns a channel that is closed if nothing was fetched for the given time; 0 is never.
func (h *handler) idle(ctx context.Context, limit time.Duration) <-chan struct{} {
	if limit <= 0 {
		return nil
	}
	over := make(chan struct{})
	h.last.Store(time.Now().UnixNano())
	go func() {
		for {
			left := limit - time.Since(time.Unix(0, h.last.Load()))
			if h.fetching.Load() > 0 {
				left = limit
			}
			if left <= 0 {
				close(over)
				return
			}
			select {
			case <-time.After(left):
			case <-ctx.Done():
				return
			}
		}
	}()
	return over
}

// open opens a regular file. It refuses a named pipe first, which could block forever when opened.
func open(path string) (f *os.File, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: not a regular file", path)
	}
	f, err = os.Open(path)
	return f, info.Size(), err
}

// handler serves one file. It compares paths itself, since a ServeMux would redirect names that it
// considers unclean.
type handler struct {
	host, origin, path string // what requests must have
	file               *os.File
	size               int64        // when Serve began; data appended later is not sent
	fetching           atomic.Int64 // number of fetches in progress
	last               atomic.Int64 // end of the last fetch, in Unix ns
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host != h.host {
		http.Error(w, "this server is for http://"+h.host, http.StatusForbidden)
		return
	}
	if r.Header.Get("Origin") != h.origin { // browsers send it with every cross-origin fetch
		http.Error(w, "this server is for "+h.origin, http.StatusForbidden)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", h.origin)
	switch {
	case r.URL.Path != h.path:
		http.NotFound(w, r)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		h.send(w, r)
	case r.Method == http.MethodOptions:
		w.Header().Set("Access-Control-Allow-Methods", "GET, HEAD")
		// Chrome asks before a public site may access a private address:
		// https://wicg.github.io/private-network-access/
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			w.Header().Set("Access-Control-Allow-Private-Network", "true")
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "only GET, HEAD and OPTIONS", http.StatusMethodNotAllowed)
	}
}

// send sends the file. It has no timestamp and must not be cached: the next trace of this name is a
// different one.
func (h *handler) send(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", contentType(h.path))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.begin()
	defer h.end()
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(h.file, 0, h.size))
}

// begin and end record the begin and end of a fetch.
func (h *handler) begin() { h.fetching.Add(1) }

func (h *handler) end() {
	h.last.Store(time.Now().UnixNano())
	h.fetching.Add(-1)
}

// contentType returns the type by the name. A compressed trace is served as a file of that type without
// Content-Encoding: with it, the browser would decompress the file, which is the UI's task.
func contentType(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".gz":
		return "application/gzip"
	case ".zst":
		return "application/zstd"
	case ".json":
		return "application/json"
	}
	return "application/octet-stream"
}
