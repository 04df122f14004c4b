package readback

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A Browser is a headless browser with one page at a time, driven over a pipe with JSON messages that end with a zero byte.
type Browser struct {
	cmd     *exec.Cmd
	dir     string
	in      io.WriteCloser
	target  string // the page, "" before the first one
	session string // session with the page

	mutex    sync.Mutex
	next     int
	waiting  map[int]chan reply
	loaded   chan struct{} // a page has loaded
	problems []string      // console errors, exceptions, violations of the policy
}

type reply struct {
	ID     int
	Method string
	Result json.RawMessage
	Params json.RawMessage
	Error  *struct{ Message string }
}

// names are the names of the program. $SGTRACE_CHROMIUM takes precedence.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// FindChromium returns the path of a browser.
func FindChromium() (string, error) {
	if path := os.Getenv("SGTRACE_CHROMIUM"); path != "" {
		return exec.LookPath(path)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium in PATH; set SGTRACE_CHROMIUM")
}

// patience is how long a browser may take for anything.
const patience = 60 * time.Second

// StartChromium starts the browser at a path.
func StartChromium(path string) (*Browser, error) {
	dir, err := os.MkdirTemp("", "sgtrace-chromium")
	if err != nil {
		return nil, err
	}
	toRead, toWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromRead, fromWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &Browser{dir: dir, in: toWrite, waiting: map[int]chan reply{}, loaded: make(chan struct{}, 1)}
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--user-data-dir="+dir, "--remote-debugging-pipe")
	b.cmd.ExtraFiles = []*os.File{toRead, fromWrite} // descriptors 3 and 4
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	toRead.Close()
	fromWrite.Close()
	go b.listen(fromRead)
	return b, nil
}

// NewPage opens an empty page, on which all methods work from then on, and closes the previous one, which would go on
// drawing.
func (b *Browser) NewPage() error {
	b.session = ""
	if b.target != "" {
		if err := b.Call("Target.closeTarget", map[string]any{"targetId": b.target}, nil); err != nil {
			return err
		}
	}
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	if err := b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	if err := b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		return err
	}
	b.target, b.session = target.TargetID, session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.Call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the browser. It asks the browser to quit, as processes that it has started would otherwise survive for a
// moment and write to their folder.
func (b *Browser) Close() error {
	b.session = ""
	err := b.Call("Browser.close", nil, nil)
	b.in.Close()
	kill := time.AfterFunc(patience, func() { b.cmd.Process.Kill() })
	defer kill.Stop()
	b.cmd.Wait()
	return errors.Join(err, os.RemoveAll(b.dir))
}

// listen passes replies on and collects problems.
func (b *Browser) listen(from io.Reader) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m reply
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mutex.Lock()
		switch {
		case m.ID > 0:
			b.waiting[m.ID] <- m
			delete(b.waiting, m.ID)
		case m.Method == "Page.loadEventFired":
			select {
			case b.loaded <- struct{}{}:
			default:
			}
		case m.Method == "Runtime.exceptionThrown", m.Method == "Log.entryAdded", m.Method == "Runtime.consoleAPICalled":
			b.problems = append(b.problems, m.Method+" "+string(m.Params))
		case m.Method == "Network.requestWillBeSent":
			b.addRequest(m.Params)
		}
		b.mutex.Unlock()
	}
}

// addRequest counts every file except the page itself as a problem.
func (b *Browser) addRequest(params json.RawMessage) {
	var sent struct{ Type string }
	if json.Unmarshal(params, &sent) != nil || sent.Type != "Document" {
		b.problems = append(b.problems, "the page loads something: "+string(params))
	}
}

// Call calls a method of the protocol.
func (b *Browser) Call(method string, params map[string]any, result any) error {
	answer := make(chan reply, 1)
	b.mutex.Lock()
	b.next++
	id := b.next
	b.waiting[id] = answer
	b.mutex.Unlock()
	message := map[string]any{"id": id, "method": method, "params": params}
	if params == nil {
		delete(message, "params")
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-time.After(patience):
		return fmt.Errorf("%s: no answer", method)
	}
}

// Open loads the page at an address and waits until it is loaded.
func (b *Browser) Open(address string) error {
	select {
	case <-b.loaded:
	default:
	}
	if err := b.Call("Page.navigate", map[string]any{"url": address}, nil); err != nil {
		return err
	}
	select {
	case <-b.loaded:
		return nil
	case <-time.After(patience):
		return errors.New("the page does not load")
	}
}

// Eval evaluates a JavaScript expression in the page.
func (b *Browser) Eval(expression string, result any) error {
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	params := map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}
	if err := b.Call("Runtime.evaluate", params, &answer); err != nil {
		return err
	}
	if e := answer.ExceptionDetails; e != nil {
		return fmt.Errorf("%s: %s", expression, e.Exception.Description)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(answer.Result.Value, result)
}

// TakeProblems returns the problems since the last call.
func (b *Browser) TakeProblems() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	list := b.problems
	b.problems = nil
	return list
}

// Media sets whether the system is dark, and whether the page is printed.
func (b *Browser) Media(kind, scheme string) error {
	return b.Call("Emulation.setEmulatedMedia", map[string]any{
		"media":    kind,
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// Size sets the size of the window.
func (b *Browser) Size(width, height int) error {
	return b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Point moves the pointer.
func (b *Browser) Point(x, y float64) error {
	return b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}
