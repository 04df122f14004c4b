package rocm

import (
	"regexp"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// rocpdBases are the tables that are read, without "rocpd_" in front and a UUID behind.
var rocpdBases = []string{"metadata", "string", "info_node", "info_process", "info_thread", "info_agent", "info_stream", "info_kernel_symbol", "info_pmc",
	"event", "pmc_event", "kernel_dispatch", "memory_copy", "memory_allocate", "region", "sample", "track"}

// rocpdSuffix matches what may follow the name of a table: the UUID of the recording.
var rocpdSuffix = regexp.MustCompile(`^_?[0-9a-fA-F]{8}(_?[0-9a-fA-F]{4}){3}_?[0-9a-fA-F]{12}$`)

// rocpdTables are the rocpdTables of a database by what they hold, each with the UUID behind its name.
type rocpdTables struct {
	db     *database
	of     map[string][]rocpdTable
	scopes map[string]int32 // by guid
}

type rocpdTable struct{ name, uuid string }

func newRocpdTables(db *database) *rocpdTables {
	t := &rocpdTables{db: db, of: map[string][]rocpdTable{}, scopes: map[string]int32{}}
	for _, name := range db.Tables() {
		rest, ok := strings.CutPrefix(name, "rocpd_")
		for _, base := range rocpdBases {
			if uuid, found := strings.CutPrefix(rest, base); ok && found && (uuid == "" || rocpdSuffix.MatchString(uuid)) {
				t.of[base] = append(t.of[base], rocpdTable{name, uuid})
			}
		}
	}
	return t
}

// scan passes the rows of all tables of a base. scope tells the recording that a row is of, within
// which its numbers are unique. The columns begin at 1; at 0 is the number of the row.
func (t *rocpdTables) scan(base string, columns []string, row func(scope int32, s *sqlite.Stmt)) {
	columns = append(columns, "guid")
	guid := len(columns)
	last, scope := "", int32(-1)
	for _, x := range t.of[base] {
		t.db.Scan(x.name, columns, func(s *sqlite.Stmt) {
			text := x.uuid
			if !s.ColumnIsNull(guid) {
				text = s.ColumnText(guid)
			}
			if text != last || scope < 0 {
				last = text
				var known bool
				if scope, known = t.scopes[text]; !known {
					scope = int32(len(t.scopes))
					t.scopes[text] = scope
				}
			}
			row(scope, s)
		})
	}
}

// A lookup finds rows by recording and number, which producers count from 0 or 1 on.
type lookup[T any] struct {
	dense []([]T) // by scope and number
	known []([]bool)
	far   map[[2]int64]T
	// append adds to a list: [memory.Append] where there may be as many rows as events.
	append func([]T, ...T) []T
}

// far numbers are those that would leave most of a list empty.
const slack = 1 << 12

func (l *lookup[T]) set(scope int32, id int64, v T) {
	for int(scope) >= len(l.dense) {
		l.dense, l.known = append(l.dense, nil), append(l.known, nil)
	}
	list, known := &l.dense[scope], &l.known[scope]
	if id < 0 || id > int64(2*len(*list)+slack) {
		if l.far == nil {
			l.far = map[[2]int64]T{}
		}
		l.far[[2]int64{int64(scope), id}] = v
		return
	}
	for int64(len(*list)) <= id {
		var none T
		*known = memory.Append(*known, false)
		if l.append != nil {
			*list = l.append(*list, none)
		} else {
			*list = append(*list, none)
		}
	}
	(*list)[id], (*known)[id] = v, true
}

func (l *lookup[T]) get(scope int32, id int64) (v T, ok bool) {
	if int(scope) < len(l.dense) && id >= 0 && id < int64(len(l.dense[scope])) && l.known[scope][id] {
		return l.dense[scope][id], true
	}
	v, ok = l.far[[2]int64{int64(scope), id}]
	return v, ok
}
