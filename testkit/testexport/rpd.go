package testexport

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// rpdTables are the tables of version 2, as created by rpd_tracer.
var rpdTables = []string{
	`CREATE TABLE "rocpd_string" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "string" varchar(4096) NOT NULL)`,
	`CREATE TABLE "rocpd_api" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pid" integer NOT NULL, "tid" integer NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, "apiName_id" integer NOT NULL, "args_id" integer NOT NULL)`,
	`CREATE TABLE "rocpd_op" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "gpuId" integer NOT NULL, "queueId" integer NOT NULL, "sequenceId" integer NOT NULL, "completionSignal" varchar(18) NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, "description_id" integer NOT NULL, "opType_id" integer NOT NULL)`,
	`CREATE TABLE "rocpd_api_ops" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "api_id" integer NOT NULL, "op_id" integer NOT NULL)`,
	`CREATE TABLE "rocpd_kernelapi" ("api_ptr_id" integer NOT NULL PRIMARY KEY, "stream" varchar(18) NOT NULL, "gridX" integer NOT NULL, "gridY" integer NOT NULL, "gridZ" integer NOT NULL, "workgroupX" integer NOT NULL, "workgroupY" integer NOT NULL, "workgroupZ" integer NOT NULL, "groupSegmentSize" integer NOT NULL, "kernelName_id" integer NOT NULL)`,
	`CREATE TABLE "rocpd_copyapi" ("api_ptr_id" integer NOT NULL PRIMARY KEY, "stream" varchar(18) NOT NULL, "size" integer NOT NULL, "kind" integer NOT NULL)`,
	`CREATE TABLE "rocpd_metadata" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "tag" varchar(4096) NOT NULL, "value" varchar(4096) NOT NULL)`,
	`CREATE TABLE "rocpd_monitor" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "deviceType" varchar(16) NOT NULL, "deviceId" integer NOT NULL, "monitorType" varchar(16) NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, "value" varchar(255) NOT NULL)`,
	`INSERT INTO rocpd_metadata (tag, value) VALUES ('schema_version', '2')`,
}

// WriteRPD writes all ranks of a run as one RPD trace. Ranges become marks, as RPD stores roctx.
func (r *ROCm) WriteRPD(path string) error {
	db := create(path)
	for _, sql := range rpdTables {
		db.run(sql)
	}
	texts := map[string]int{}
	text := func(s string) int {
		id, ok := texts[s]
		if !ok {
			id = len(texts) + 1
			texts[s] = id
			db.run("INSERT INTO rocpd_string VALUES (?, ?)", id, s)
		}
		return id
	}
	op, link := 0, 0
	for n, p := range r.Ranks {
		session := (n + 1) << 32
		for i, c := range p.Calls {
			db.run("INSERT INTO rocpd_api VALUES (?, ?, ?, ?, ?, ?, ?)", session+i, p.PID, p.PID, c.Start, c.End, text(c.Name), text("key="+r.Canary))
		}
		for i, x := range p.Ranges {
			db.run("INSERT INTO rocpd_api VALUES (?, ?, ?, ?, ?, ?, ?)", session+len(p.Calls)+i, p.PID, p.PID, x.Start, x.Start, text("UserMarker"), text(x.Text))
		}
		did := func(call, queue int, start, end int64, description, kind string) {
			op, link = op+1, link+1
			db.run("INSERT INTO rocpd_op VALUES (?, ?, ?, 0, '', ?, ?, ?, ?)", op, n, queue, start, end, text(description), text(kind))
			db.run("INSERT INTO rocpd_api_ops VALUES (?, ?, ?)", link, session+call, op)
		}
		for _, k := range p.Kernels {
			kind := "KernelExecution"
			if p.Calls[k.Call].Name == "hipGraphLaunch" {
				kind = "Task"
			} else {
				db.run("INSERT INTO rocpd_kernelapi VALUES (?, '0x0', ?, 1, 1, 256, 1, 1, 0, ?)", session+k.Call, k.Blocks, text(k.Name))
			}
			did(k.Call, k.Stream, k.Start, k.End, k.Name, kind)
		}
		for _, c := range p.Copies {
			kind := "CopyHostToDevice"
			if c.Back {
				kind = "CopyDeviceToHost"
			}
			db.run("INSERT INTO rocpd_copyapi VALUES (?, '0x0', ?, 1)", session+c.Call, c.Bytes)
			did(c.Call, c.Stream, c.Start, c.End, "", kind)
		}
		db.run("INSERT INTO rocpd_monitor VALUES (?, 'gpu', ?, 'sclk', ?, ?, '2100')", n+1, n, p.Begin, p.End)
	}
	return db.close()
}

// A database is a database being written. It keeps the first error.
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
