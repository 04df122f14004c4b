package live

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// service is a running Serve.
type service struct {
	base   string // http://127.0.0.1:port
	cancel context.CancelFunc
	err    chan error
	client http.Client
}

func startService(t *testing.T, name, content string, idle time.Duration) *service {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := &service{base: "http://" + ln.Addr().String(), cancel: cancel, err: make(chan error, 1)}
	s.client.Transport = &http.Transport{DisableCompression: true}
	t.Cleanup(s.client.CloseIdleConnections)
	go func() { s.err <- Serve(ctx, path, ln, ServeOptions{UI: UI, Idle: idle}) }()
	return s
}

func listen(t *testing.T) net.Listener {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// do sends a request as the UI would, with the headers in header added. Its Host replaces the
// request's.
func (s *service) do(t *testing.T, method, path string, header http.Header) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", UI)
	maps.Copy(req.Header, header)
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// fetch fetches the file and returns its content.
func (s *service) fetch(t *testing.T, path string) (string, *http.Response) {
	t.Helper()
	resp := s.do(t, "GET", path, nil)
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content), resp
}

// ended waits for the end of Serve.
func (s *service) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.err:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("still serving")
		return nil
	}
}

func TestAnswers(t *testing.T) {
	const content = "the trace"
	s := startService(t, "out.pftrace", content, 0)
	for _, c := range []struct {
		name, method, path string
		header             http.Header
		status             int
		body               string // expected part of the body
		want               http.Header
	}{
		{name: "another path", method: "GET", path: "/other", status: 404},
		{name: "directory", method: "GET", path: "/", status: 404},
		{name: "path upward", method: "GET", path: "/../out.pftrace", status: 404},
		{name: "path below", method: "GET", path: "/out.pftrace/", status: 404},
		{name: "unclean path", method: "GET", path: "//out.pftrace", status: 404},
		{name: "probe for trace_processor", method: "POST", path: "/status", status: 404,
			want: http.Header{"Access-Control-Allow-Origin": {UI}}},
		{name: "preflight elsewhere", method: "OPTIONS", path: "/other", status: 404},
		{name: "another origin", method: "GET", path: "/out.pftrace", status: 403, body: UI,
			header: http.Header{"Origin": {"https://evil.example"}}, want: http.Header{"Access-Control-Allow-Origin": nil}},
		{name: "origin of another scheme", method: "GET", path: "/out.pftrace", status: 403,
			header: http.Header{"Origin": {"http://ui.perfetto.dev"}}},
		{name: "no origin", method: "GET", path: "/out.pftrace", status: 403, header: http.Header{"Origin": {}}},
		{name: "preflight from another origin", method: "OPTIONS", path: "/out.pftrace", status: 403,
			header: http.Header{"Origin": {"null"}}, want: http.Header{"Access-Control-Allow-Origin": nil}},
		{name: "another host", method: "GET", path: "/out.pftrace", status: 403, body: s.base,
			header: http.Header{"Host": {"evil.example:9001"}}, want: http.Header{"Access-Control-Allow-Origin": nil}},
		{name: "host without port", method: "GET", path: "/out.pftrace", status: 403, header: http.Header{"Host": {"127.0.0.1"}}},
		{name: "POST", method: "POST", path: "/out.pftrace", status: 405, want: http.Header{"Allow": {"GET, HEAD, OPTIONS"}}},
		{name: "DELETE", method: "DELETE", path: "/out.pftrace", status: 405},
		{name: "HEAD", method: "HEAD", path: "/out.pftrace", status: 200,
			want: http.Header{"Content-Length": {"9"}, "Content-Type": {"application/octet-stream"}, "Access-Control-Allow-Origin": {UI}}},
		{name: "preflight", method: "OPTIONS", path: "/out.pftrace", status: 204,
			want: http.Header{"Access-Control-Allow-Origin": {UI}, "Access-Control-Allow-Methods": {"GET, HEAD"},
				"Access-Control-Allow-Private-Network": nil}},
		{name: "preflight for a private network", method: "OPTIONS", path: "/out.pftrace", status: 204,
			header: http.Header{"Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Private-Network": {"true"}},
			want:   http.Header{"Access-Control-Allow-Origin": {UI}, "Access-Control-Allow-Private-Network": {"true"}}},
		{name: "range", method: "GET", path: "/out.pftrace", status: 206, body: "trace", header: http.Header{"Range": {"bytes=4-8"}},
			want: http.Header{"Content-Range": {"bytes 4-8/9"}, "Content-Length": {"5"}}},
		{name: "range of everything", method: "GET", path: "/out.pftrace", status: 206, body: content,
			header: http.Header{"Range": {"bytes=0-"}}},
		{name: "range beyond the end", method: "GET", path: "/out.pftrace", status: 416, header: http.Header{"Range": {"bytes=9-"}},
			want: http.Header{"Content-Range": {"bytes */9"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := s.do(t, c.method, c.path, c.header)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || !strings.Contains(string(body), c.body) {
				t.Errorf("body %q, %v; want %q", body, err, c.body)
			}
			if c.status >= 400 && strings.Contains(string(body), content) {
				t.Errorf("the file is in the body: %q", body)
			}
			for key, want := range c.want {
				if got := resp.Header.Values(key); !slices.Equal(got, want) {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
		})
	}
	if got, _ := s.fetch(t, "/out.pftrace"); got != content {
		t.Errorf("got %q, want %q", got, content)
	}
}

func TestServe(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<20) // larger than socket buffers
	for _, c := range []struct{ name, content, contentType string }{
		{"out.pftrace", "trace", "application/octet-stream"},
		{"out.pftrace.gz", "\x1f\x8b\x08trace", "application/gzip"},
		{"OUT.JSON.GZ", "\x1f\x8b\x08trace", "application/gzip"},
		{"out.pftrace.zst", "\x28\xb5\x2f\xfdtrace", "application/zstd"},
		{"out.json", "{}", "application/json"},
		{"two words 100%.pftrace", "trace", "application/octet-stream"},
		{"größe-日本.json.gz", "trace", "application/gzip"},
		{"index.html", "<html>", "application/octet-stream"},
		{"empty", "", "application/octet-stream"},
		{"large", large, "application/octet-stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startService(t, c.name, c.content, 0)
			got, resp := s.fetch(t, "/"+url.PathEscape(c.name))
			if got != c.content {
				t.Errorf("got %d bytes, want the file's %d", len(got), len(c.content))
			}
			for key, want := range map[string]string{
				"Access-Control-Allow-Origin": UI,
				"Content-Type":                c.contentType,
				"Content-Encoding":            "",
				"Cache-Control":               "no-store",
				"Last-Modified":               "",
			} {
				if got := resp.Header.Get(key); got != want {
					t.Errorf("%s: %q, want %q", key, got, want)
				}
			}
			s.cancel()
			if err := s.ended(t); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if conn, err := net.Dial("tcp4", strings.TrimPrefix(s.base, "http://")); err == nil {
				conn.Close()
				t.Error("still listening")
			}
		})
	}
}

// A page may be reloaded: the idle time counts from the end of the last fetch, however long that
// takes.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 3 * time.Second
		h := &handler{}
		over := h.idle(t.Context(), limit)
		time.Sleep(limit - 1)
		h.begin()
		time.Sleep(5 * limit)
		select {
		case <-over:
			t.Error("ended amid a fetch")
		default:
		}
		h.end()
		last := time.Now()
		<-over
		if after := time.Since(last); after < limit || after > 2*limit {
			t.Errorf("ended %v after the last fetch, want %v or a little more", after, limit)
		}
	})
}

// A fetched file is served again.
func TestReload(t *testing.T) {
	s := startService(t, "out.json", "{}", 0)
	for range 2 {
		if got, _ := s.fetch(t, "/out.json"); got != "{}" {
			t.Errorf("got %q", got)
		}
	}
}

// A different UI has its own origin, and the server then allows only that one.
func TestOtherUI(t *testing.T) {
	for ui, want := range map[string]string{
		UI: UI, "http://host:8080/perfetto/": "http://host:8080", "https://a.example": "https://a.example",
		"ftp://a": "", "a.example": "", "": "", "https://a/?x": "", "https://a/#x": "", "https://": "",
	} {
		if got, err := Origin(ui); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: origin %q, %v; want %q", ui, got, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "out.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &service{err: make(chan error, 1)}
	ln := listen(t)
	s.base = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { s.err <- Serve(ctx, path, ln, ServeOptions{UI: "http://host:8080/perfetto"}) }()
	for origin, status := range map[string]int{"http://host:8080": 200, UI: 403} {
		if resp := s.do(t, "GET", "/out.json", http.Header{"Origin": {origin}}); resp.StatusCode != status {
			t.Errorf("from %s: status %d, want %d", origin, resp.StatusCode, status)
		}
	}
}

func TestCancel(t *testing.T) {
	content := strings.Repeat("0123456789abcdef", 2<<20)
	for _, c := range []struct {
		name   string
		before func(t *testing.T, s *service)
	}{
		{"idle", func(*testing.T, *service) {}},
		{"amid a fetch", func(t *testing.T, s *service) { s.do(t, "GET", "/large", nil) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startService(t, "large", content, time.Hour)
			c.before(t, s)
			s.cancel()
			if err := s.ended(t); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the cancellation", err)
			}
		})
	}
}

func TestServeErrors(t *testing.T) {
	dir := t.TempDir()
	ln := listen(t)
	if err := Serve(t.Context(), filepath.Join(dir, "none"), ln, ServeOptions{UI: UI}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is left open: %v", err)
	}
	if err := Serve(t.Context(), dir, listen(t), ServeOptions{UI: UI}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: got %v", err)
	}
	file := filepath.Join(dir, "out.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), file, ln, ServeOptions{UI: UI}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed listener: got %v", err)
	}
}

func TestListen(t *testing.T) {
	ln, err := Listen() // fails if the port is taken, which serves the test as well
	if err == nil {
		defer ln.Close()
		if got := ln.Addr().String(); got != Addr {
			t.Errorf("listening at %s, want %s", got, Addr)
		}
	}
	if _, err := Listen(); err == nil || !strings.Contains(err.Error(), "stop the program that uses it") {
		t.Errorf("port in use: got %v", err)
	}
}
