package views

import "slices"

// A Dialect has the differences between engines. Texts are formats for package fmt.
type Dialect struct {
	Name     string
	view     string            // begins the definition of a view
	file     string            // the rows of a file
	captures string            // the rows of all files that match a pattern, with the column capture
	name     string            // of a column, which may be a reserved word
	wide     string            // type of integers that hold squares of durations
	long     string            // type of 64-bit integers
	real     string            // type of floating-point numbers
	div      string            // integer division, without the remainder
	quantile string            // nearest rank, like all our percentiles
	median   string            // the mean of the two middle values if their number is even
	types    map[string]string // by type of a [dataset.Column]
	macros   []string          // statements that define short names for percentiles
}

// Dialects are the dialects of 'sgtrace sql'.
var Dialects = []*Dialect{
	{
		Name: "duckdb", view: "create or replace view %s as", name: `"%s"`,
		file:     "read_parquet('%s', hive_partitioning = false)",
		captures: "read_parquet('%s', union_by_name = true, hive_partitioning = true, hive_types_autocast = false)",
		wide:     "hugeint", long: "bigint", real: "double", div: "(%s // %s)",
		quantile: "quantile_disc(%[2]s, %[1]s)", median: "quantile_cont(%s, 0.5)",
		types: map[string]string{"INTEGER": "INTEGER", "BIGINT": "BIGINT", "UBIGINT": "UBIGINT", "DOUBLE": "DOUBLE", "BOOLEAN": "BOOLEAN", "VARCHAR": "VARCHAR"},
		macros: []string{
			"-- Percentiles as reports have them: nearest rank.\ncreate or replace macro p50(x) as quantile_disc(x, 0.5)",
			"create or replace macro p90(x) as quantile_disc(x, 0.9)", "create or replace macro p95(x) as quantile_disc(x, 0.95)",
			"create or replace macro p99(x) as quantile_disc(x, 0.99)",
		},
	},
	{
		Name: "clickhouse", view: "create or replace view %s as", name: "`%s`",
		file:     "file('%s', Parquet)",
		captures: "(select extract(_path, 'capture=([^/]+)') as capture, * from file('%s', Parquet))",
		wide:     "Int256", long: "Nullable(Int64)", real: "Nullable(Float64)", div: "intDiv(%s, %s)",
		quantile: "quantileExactWeighted(%s)(%s, 1)", median: "quantileExactInclusive(0.5)(%s)",
		types: map[string]string{"INTEGER": "Nullable(Int32)", "BIGINT": "Nullable(Int64)", "UBIGINT": "Nullable(UInt64)", "DOUBLE": "Nullable(Float64)",
			"BOOLEAN": "Nullable(Bool)", "VARCHAR": "Nullable(String)"},
	},
	{
		Name: "spark", view: "create or replace temporary view %s as", name: "`%s`",
		file:     "parquet.`%s`",
		captures: "(select regexp_extract(_metadata.file_path, 'capture=([^/]+)', 1) as capture, * from parquet.`%s`)",
		wide:     "decimal(38, 0)", long: "bigint", real: "double", div: "(%s div %s)",
		quantile: "cast(percentile_disc(%s) within group (order by %s) as bigint)", median: "percentile(%s, 0.5)",
		types: map[string]string{"INTEGER": "int", "BIGINT": "bigint", "UBIGINT": "decimal(20, 0)", "DOUBLE": "double", "BOOLEAN": "boolean", "VARCHAR": "string"},
	},
}

// Find returns a dialect by name; nil if there is none.
func Find(name string) *Dialect {
	if i := slices.IndexFunc(Dialects, func(d *Dialect) bool { return d.Name == name }); i >= 0 {
		return Dialects[i]
	}
	return nil
}
