package rows

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say how a file is read.
type Options struct {
	Name  string         // of the file in messages; "" is its path
	Syms  *trace.Symbols // nil is a table of its own
	Args  *trace.Args    // of NVTX payloads; nil leaves them out
	Diags *trace.Diags   // nil drops diagnostics
	// Brief leaves out what reports do not need, which takes half the time: launch
	// configurations, graph ids, colors and payloads.
	Brief bool
	// KeepSecrets tells to keep payloads that may hold prompts or credentials.
	KeepSecrets bool
	// Beside is another source of the same file, which stays open for longer: what it found out
	// about the file is not found out again.
	Beside *Source
	// Workers is how many tables a reader of all of them reads at a time; 0 is one for
	// every core, at most four.
	Workers int
}

// A Source is an open export. Its methods that yield rows may be called from
// several goroutines at once, and may be ranged over. The rows they yield are
// valid until the next one.
type Source struct {
	Name        string
	Meta        Meta
	Processes   []Process      // by pid
	Threads     []Thread       // by pid and tid
	StreamUsers map[int32]bool // processes that made CUDA streams
	Ranks       []Rank
	// Unread are the tables that hold something and that no method reads.
	Unread []Table
	// Environment is what environment variables say about the rank.
	Environment []profile.Hint
	// Options are those of [Open], with tables of symbols and diagnostics.
	Options Options

	store storage.Store
	base  int64 // what is added to times of the store

	mu   sync.Mutex
	free []*connection

	noNames  sync.Once // says that StringIds cannot be read
	lost     sync.Map  // names that are missing, by [lostName]: they are told once
	launches launches
	nvtx     nvtxOnce
	nccl     ncclOnce
}

// Open opens the export at path, a file or a folder, and reads what it tells about itself.
// The caller closes the Source.
func Open(path string, opt Options) (*Source, error) {
	if opt.Syms == nil {
		opt.Syms = trace.NewSymbols()
	}
	if opt.Diags == nil {
		opt.Diags = &trace.Diags{}
	}
	s := &Source{Name: cmp.Or(opt.Name, path), Options: opt, launches: newLaunches()}
	if err := s.open(path); err != nil {
		s.Close()
		return nil, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	return s, nil
}

func (s *Source) open(path string) error {
	var err error
	if s.Options.Beside != nil {
		s.store = s.Options.Beside.store
	} else if s.store, err = storage.Open(path); err != nil {
		return err
	}
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer s.release(c)
	state := s.store.State()
	switch {
	case len(state.Recovered) > 0:
		s.Diag(trace.NsysTablesFound, "", 0, strings.Join(state.Recovered, ", "), state.Lost)
	case state.TablesDamaged:
		s.Diag(trace.NsysTablesDamaged, "", 0)
	}
	if state.Cut() {
		s.Diag(trace.NsysTruncated, "", 0, state.Have, state.Want)
	}
	s.describe(c)
	return nil
}

// Close gives the connections back. Scans must have ended.
func (s *Source) Close() error {
	var errs []error
	for _, c := range s.free {
		errs = append(errs, c.names.close(), c.Conn.Close())
	}
	s.free = nil
	if s.store != nil && s.Options.Beside == nil {
		// What was read may be partly old and partly new.
		if s.store.Changed() {
			s.Diag(trace.NsysChanged, "", 0)
		}
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	return errors.Join(errs...)
}

// A connection reads one table at a time, and knows the names it met.
type connection struct {
	Conn  storage.Conn
	names *names
}

// connect returns a connection that nobody else uses until it is released.
func (s *Source) connect() (*connection, error) {
	s.mu.Lock()
	if n := len(s.free); n > 0 {
		c := s.free[n-1]
		s.free = s.free[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	c, err := s.store.Connect()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c, names: newNames(s, c)}, nil
}

func (s *Source) release(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, c)
}

// Diag reports about a table, or about the file if table is empty. row is the
// number of the row in the order of the file, 0 is none.
func (s *Source) Diag(m *trace.Message, table string, row int64, values ...any) {
	pos := trace.Pos{File: s.Name, Line: row, Offset: -1}
	if table != "" {
		// Diagnostics are counted by file and code, and tables are read side by side.
		pos.File += ":" + table
	}
	s.Options.Diags.Add(m.At(pos, values...))
}
