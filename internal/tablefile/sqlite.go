package tablefile

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
)

// MaxValue is the longest value in bytes. Real names reach 100 kB.
const MaxValue = 16 << 20

// OpenSQLite opens a file without locking, journals, or writing. Its absolute path may contain any characters.
// No value may be longer than longest bytes. Views, which are code, are not trusted. With short, SQLite accepts
// files that are shorter than their header says: it believes that they are being repaired. Nothing is ever
// written all the same.
func OpenSQLite(path string, longest int32, short bool) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(address(path), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	conn.Limit(sqlite.LimitLength, longest)
	pragmas := []string{"PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON"}
	if short {
		pragmas = append(pragmas, "PRAGMA writable_schema=ON")
	}
	for _, p := range pragmas {
		if err := Exec(conn, p); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// address returns the URI by which SQLite opens a file as immutable. It escapes characters like ? and # in the
// path.
func address(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1"}
	return u.String()
}

// Exec runs a statement and ignores its rows.
func Exec(conn *sqlite.Conn, sql string) error {
	stmt, _, err := conn.PrepareTransient(sql)
	if err != nil {
		return err
	}
	_, err = stmt.Step()
	return errors.Join(err, stmt.Finalize())
}

// Quote returns a name as a quoted SQL identifier.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
