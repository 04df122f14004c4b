package main

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/output"
	"github.com/sgtrace/sgtrace/internal/temporary"
)

// outputFiles are the outputs of a run so far, which an interrupt removes unless they are finished.
type outputFiles struct {
	interrupted int // exit status after an interrupt

	watch sync.Once
	mu    sync.Mutex
	list  []*output.Output
}

// add creates an output. Errors that the user can mend by another name are of type
// [commandline.UsageError].
func (l *outputFiles) add(name string, create func() (*output.Output, error)) (*output.Output, error) {
	l.onInterrupt()
	// The lock keeps an interrupt waiting until there is something to remove.
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.list {
		if output.SameFile(o.Name(), name) {
			return nil, commandline.Usage("%s is also another output", name)
		}
	}
	out, err := create()
	if err != nil {
		if errors.Is(err, output.ErrOutputName) {
			return nil, commandline.AsUsage(err)
		}
		return nil, err
	}
	l.list = append(l.list, out)
	return out, nil
}

// release gives outputs that were held their names. An interrupt waits until all have
// theirs.
func (l *outputFiles) release(outputs []*output.Output) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, out := range outputs {
		if err := out.Release(); err != nil {
			return err
		}
	}
	return nil
}

// onInterrupt makes sure that an interrupt leaves nothing behind.
func (l *outputFiles) onInterrupt() { l.watch.Do(l.removeOnInterrupt) }

// removeOnInterrupt ends the program cleanly on signals, but for those that it was
// started to ignore: by nohup, or in the background of a script.
func (l *outputFiles) removeOnInterrupt() {
	signals := make(chan os.Signal, 1)
	for _, s := range [...]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		<-signals
		l.abandon()
		os.Exit(l.interrupted)
	}()
}

// abandon removes what is not finished, and temporary files. Nothing can be created from
// then on.
func (l *outputFiles) abandon() {
	temporary.RemoveAll()
	l.mu.Lock()
	for _, out := range l.list {
		out.Abandon()
	}
}
