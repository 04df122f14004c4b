package testexport

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A database is one that is written. The first error stays.
type database struct {
	conn *sqlite.Conn
	err  error
}

func create(path string) *database {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	d := &database{conn, err}
	if err == nil {
		d.run("PRAGMA journal_mode=OFF")
		d.run("BEGIN")
	}
	return d
}

func (d *database) run(sql string, args ...any) {
	if d.err != nil {
		return
	}
	if err := sqlitex.Execute(d.conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
		d.err = fmt.Errorf("%s: %w", sql, err)
	}
}

func (d *database) close() error {
	d.run("COMMIT")
	if d.conn == nil {
		return d.err
	}
	return errors.Join(d.err, d.conn.Close())
}
