package rows

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Options control how a file is read.
type Options struct {
	Name  string         // name of the file in messages; "" means its path
	Syms  *trace.Symbols // nil means a new table
	Args  *trace.Args    // for NVTX payloads; nil omits them
	Diags *trace.Diags   // nil drops diagnostics
	// Brief omits data that reports do not need, which saves half the time: launch configurations, graph ids,
	// colors, and payloads.
	Brief bool
	// KeepSecrets keeps payloads that may hold prompts or credentials.
	KeepSecrets bool
	// Beside is another source of the same file that stays open for longer; its facts about the file are reused.
	Beside *Source
	// Workers is the number of tables that are read at a time, when all are read; 0 is one per core, at most four.
	Workers int
}

// A Source is an open export. Its methods that yield rows may be called from several goroutines at once, and
// may be ranged over. A yielded row is valid until the next one.
type Source struct {
	Name        string
	Meta        Meta
	Processes   []Process      // by pid
	Threads     []Thread       // by pid and tid
	StreamUsers map[int32]bool // processes that created CUDA streams
	Ranks       []Rank
	// Unread are the tables with rows that no method reads.
	Unread []Table
	// Environment is the rank according to environment variables.
	Environment []naming.Hint
	// Options are those passed to [Open], with tables of symbols and diagnostics filled in.
	Options Options

	store   storage.Store
	base    int64 // offset from times in the store
	devices *devices

	mu   sync.Mutex
	free []*connection

	noNames  sync.Once // reports that StringIds cannot be read
	lost     sync.Map  // missing names, by [lostName]: each is reported once
	launches launches
	nvtx     nvtxOnce
	nccl     ncclOnce
}

// Open opens the export at path, a file or a folder, and reads its description of itself. The caller closes the
// Source.
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

// Close closes the connections. All scans must have ended.
func (s *Source) Close() error {
	var errs []error
	for _, c := range s.free {
		errs = append(errs, c.names.close(), c.Conn.Close())
	}
	s.free = nil
	if s.store != nil && s.Options.Beside == nil {
		// Some of the rows may be old, and some new.
		if s.store.Changed() {
			s.Diag(trace.NsysChanged, "", 0)
		}
		errs = append(errs, s.store.Close())
		s.store = nil
	}
	return errors.Join(errs...)
}

// A connection reads one table at a time, and remembers the names it has looked up.
type connection struct {
	Conn  storage.Conn
	names *names
}

// connect returns a connection for exclusive use until it is released.
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

// Diag reports about a table, or about the file if table is empty. row is the number of the row in the order of
// the file, or 0.
func (s *Source) Diag(m *trace.Message, table string, row int64, values ...any) {
	pos := trace.Pos{File: s.Name, Line: row, Offset: -1}
	if table != "" {
		// Diagnostics are counted by file and code, and tables are read concurrently.
		pos.File += ":" + table
	}
	s.Options.Diags.Add(m.At(pos, values...))
}
