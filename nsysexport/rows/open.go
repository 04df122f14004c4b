package rows

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"zombiezen.com/go/sqlite"

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
	// Workers is how many tables a reader of all of them reads at a time; 0 is one for
	// every core, at most four.
	Workers int
}

// A Source is an open export. Its methods that yield rows may be called from
// several goroutines at once, and may be ranged over. The rows they yield are
// valid until the next one.
type Source struct {
	Name      string
	Meta      Meta
	Processes []Process // by pid
	Threads   []Thread  // by pid and tid
	Streams   []Stream
	Ranks     []Rank
	// Unread are the tables that hold something and that no method reads.
	Unread []Table
	// Environment is what environment variables say about the rank.
	Environment []profile.Hint
	// Options are those of [Open], with tables of symbols and diagnostics.
	Options Options

	file   *os.File
	uri    string
	header header
	schema schema
	base   int64 // what is added to times of the file

	mu   sync.Mutex
	free []*connection

	noNames  sync.Once // says that StringIds cannot be read
	launches launches
	nvtx     nvtxOnce
	nccl     ncclOnce
}

// Open checks the file at path, opens it and reads what it tells about itself.
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
	// Journals lie beside the file that a link leads to.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return unwrapPath(err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return err
	}
	// Opening a pipe waits for somebody who writes to it.
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return errors.New("is not a regular file, which SQLite needs: copy it to a disk")
	}
	if s.file, err = os.Open(real); err != nil {
		return unwrapPath(err)
	}
	if s.header, err = checkFile(s.file, real); err != nil {
		return unwrapPath(err)
	}
	s.uri = fileURI(real)
	c, err := s.connect()
	if err != nil {
		return err
	}
	defer s.release(c)
	s.schema, err = readSchema(c.conn)
	switch isExport := s.schema.isExport(); {
	case err != nil:
		return fmt.Errorf("%w (%v)", errSchema, err)
	case !isExport && (s.schema.damaged || s.header.cut()):
		return errSchema
	case !isExport:
		return fmt.Errorf("a SQLite database without Nsight Systems tables: %w", ErrForeign)
	case s.schema.damaged:
		s.Diag(trace.NsysTablesDamaged, "", 0)
	}
	if s.header.cut() {
		s.Diag(trace.NsysTruncated, "", 0, s.header.size, s.header.want)
	}
	s.describe(c)
	return nil
}

// errSchema says that nothing of a file can be found.
var errSchema = errors.New("the list of tables is damaged, so nothing can be read: " +
	"copy the file again, or run nsys export again")

// unwrapPath takes the path out of an error that will get it again.
func unwrapPath(err error) error {
	var pathErr interface{ Unwrap() error }
	if errors.As(err, &pathErr) && !errors.Is(err, ErrForeign) {
		if inner := pathErr.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}

// fileURI returns the address under which SQLite opens a file without locking,
// journals or writing. Characters like ? and # of the path are escaped.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1"}
	return u.String()
}

// Close gives the connections back. Scans must have ended.
func (s *Source) Close() error {
	var errs []error
	for _, c := range s.free {
		c.names.close()
		errs = append(errs, c.conn.Close())
	}
	s.free = nil
	if s.file != nil {
		s.checkUnchanged()
		errs = append(errs, s.file.Close())
		s.file = nil
	}
	return errors.Join(errs...)
}

// checkUnchanged reports a file that was written to meanwhile: what was read of it may
// be partly old and partly new.
func (s *Source) checkUnchanged() {
	info, err := s.file.Stat()
	if err != nil || s.header.size == 0 || info.Size() == s.header.size && info.ModTime().Equal(s.header.changed) {
		return
	}
	s.Diag(trace.NsysChanged, "", 0)
}

// A connection reads one table at a time, and knows the names it met.
type connection struct {
	conn  *sqlite.Conn
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
	conn, err := sqlite.OpenConn(s.uri, sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	// No value is longer than the file, whatever its damaged length says.
	conn.Limit(sqlite.LimitLength, int32(min(max(s.header.size, 1<<10), maxValue)))
	pragmas := []string{"PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON"}
	if s.header.cut() {
		// SQLite refuses files that are shorter than their header says, unless it is
		// told that they are under repair. Nothing is ever written all the same.
		pragmas = append(pragmas, "PRAGMA writable_schema=ON")
	}
	for _, p := range pragmas {
		if err := exec(conn, p); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return &connection{conn: conn, names: newNames(s, conn)}, nil
}

// maxValue is how long a value may be, in bytes. Real names reach 100 kB.
const maxValue = 16 << 20

func exec(conn *sqlite.Conn, sql string) error {
	stmt, _, err := conn.PrepareTransient(sql)
	if err != nil {
		return err
	}
	_, err = stmt.Step()
	return errors.Join(err, stmt.Finalize())
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
