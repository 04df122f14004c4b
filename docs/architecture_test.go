package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modulePath begins the import paths of the packages of this module.
const modulePath = "github.com/sgtrace/sgtrace/"

// A layer lists packages of this module and what they may import outside of tests. Packages are
// named by their folders; "x/..." means x and everything below it.
type layer struct {
	of     []string
	may    []string
	chain  bool   // each package may also import the earlier ones in of
	reason string // why may excludes other packages
}

var (
	// reported is what reports see.
	reported = []string{"trace", "trace/naming", "trace/redact", "request", "profile", "profile/kernelname", "series", "profile/recorder", "format/inventory", "internal/..."}
	// base is what all reports, or several of them, are built on.
	base = []string{"analyze/words", "analyze/distribution", "analyze/table", "analyze/metric", "analyze/place", "analyze/finding", "analyze/document",
		"analyze/load", "analyze/straggler", "analyze/cause", "analyze/profilewalk", "analyze/replay"}
	// single packages each answer one question from tables alone; those in asking also use answers of other packages.
	single = []string{"analyze/requests", "analyze/change/work", "analyze/transfer", "analyze/lifecycle", "analyze/caches", "analyze/telemetry", "analyze/kernel", "analyze/gpu", "analyze/rank", "analyze/hang", "analyze/hardware", "analyze/diff/compare", "analyze/diff/setup",
		"analyze/allocations", "analyze/routing", "analyze/inspect"}
	asking = []string{"analyze/tail", "analyze/change", "analyze/serverlimit", "analyze/collective", "analyze/host", "analyze/gaps", "analyze/graphs", "analyze/operators", "analyze/gpuloss", "analyze/tokens", "analyze/overtime", "analyze/diff/pace", "analyze/diff/measured", "analyze/diff",
		"analyze/critical", "analyze/telemetry/failed", "analyze/telemetry/judge", "analyze/telemetry/held", "analyze/telemetry/shown", "analyze/telemetry/slow"}
	questions = slices.Concat(single, asking)
	// filled is what the reader of a profiler's format fills and builds on.
	filled = []string{"profile/recorder", "format", "format/inventory", "format/logline", "profile", "profile/kernelname", "series", "request/spantable", "trace", "trace/naming", "trace/redact", "internal/..."}

	sees  = "a report sees tables, whoever filled them: neither formats nor convert"
	alone = "a format knows what all formats share, and its own folder: never another format"
)

// layers lists all packages, from the bottom up: no package imports one in a later layer. A package
// belongs to the first layer that contains it.
var layers = []layer{
	{of: []string{"internal/memory", "internal/order"}, reason: "package trace stands on helpers, so that these know nothing"},
	{of: []string{"internal/..."}, may: []string{"internal/..."}, reason: "all stand on it, so that it knows none of them"},
	{of: []string{"golden/..."}, may: []string{"golden/..."}, reason: "what it writes must not agree with our readers by construction"},

	{of: []string{"trace"}, may: []string{"internal/memory", "internal/order", "internal/parallel"}, reason: "it is the ground that all stand on"},
	{of: []string{"trace/naming", "trace/redact"}, chain: true, may: []string{"trace", "internal/..."}, reason: "what ranks and files are called, and what is secret, depends on no table"},
	{of: []string{"profile/kernelname"}, may: []string{"trace"}, reason: "it knows names, and no table"},
	{of: []string{"profile"}, may: []string{"profile/kernelname", "trace", "trace/naming", "internal/..."}, reason: "tables know neither each other nor who fills them"},
	{of: []string{"align/matching", "align"}, chain: true, may: []string{"profile", "profile/kernelname", "trace", "internal/..."}, reason: "it relates clocks by numbers, whoever measured them"},
	{of: []string{"request"}, may: []string{"align", "trace", "trace/naming", "trace/redact", "internal/..."}, reason: "tables know neither each other nor who fills them"},
	{of: []string{"series", "profile/recorder"}, may: []string{"trace", "trace/naming", "internal/..."}, reason: "a table knows nobody who fills it"},
	{of: []string{"request/spantable"}, may: []string{"series", "trace", "trace/redact", "internal/..."}, reason: "a table knows nobody who fills it"},
	{of: []string{"format/logline"}, may: []string{"profile/recorder", "trace", "internal/..."}, reason: "it fills one table, for formats of any kind of log"},
	{of: []string{"format/inventory", "format"}, may: []string{"profile/recorder", "profile", "series", "request/spantable", "trace"}, chain: true, reason: "what all formats share knows none of them"},
	{of: []string{"perfetto/reader"}, may: []string{"trace"}, reason: "it shares no code with the writer"},
	{of: []string{"perfetto"}, may: []string{"profile", "trace", "internal/..."}, reason: "a writer knows timelines, and no reader"},

	{of: []string{"format/envelope"}, may: []string{"format/logline", "internal/jsonscan", "internal/memory"}, reason: "it does not know what it is around, but for lines of logs in a store of them"},
	{of: []string{"format/serverlog/errortext"}, may: []string{"format/logline", "series", "trace", "internal/lazyregexp"}, reason: "what may be kept of an error depends on no kind of log"},
	{of: []string{"format/serverlog/requestlog"}, may: []string{"format/logline", "series", "request/spantable", "trace", "internal/jsonscan"}, reason: "a line that tells of a request needs no other line"},
	{of: []string{"format/serverlog", "format/serverlog/router", "format/serverlog/enginelog"}, may: slices.Concat(filled, []string{"format/serverlog/errortext", "format/serverlog/requestlog"}), reason: alone + "; and what may be kept of an error, and what is told of a request, are below what logs say"},
	{of: []string{"format/platform/counted"}, may: []string{"series", "trace"}, reason: "what counters mean depends on no format that has them"},
	{of: []string{"format/platform"}, may: slices.Concat(filled, []string{"otlpjson/beside", "format/platform/counted"}), reason: alone},
	{of: []string{"format/rocm"}, may: slices.Concat(filled, []string{"perfetto/reader"}), reason: alone + "; and how Perfetto files are read is in perfetto/reader"},
	{of: []string{"otlpjson/beside"}, may: filled, reason: "it keeps what others read"},
	{of: []string{"otlpjson", "format/..."}, may: slices.Concat(filled, []string{"otlpjson/beside"}), reason: alone},
	{of: []string{"chrometrace/..."}, may: slices.Concat(filled, []string{"chrometrace/internal/parse"}), reason: alone},
	{of: []string{"nsysexport/storage", "nsysexport/rows"}, chain: true,
		may: filled, reason: alone + "; and how its tables lie on a disk is below what they mean"},
	{of: []string{"nsysexport/..."}, may: slices.Concat(filled, []string{"nsysexport/rows", "nsysexport/storage"}), reason: alone},
	{of: []string{"dataset"}, may: filled, reason: "it keeps what any format gives, and knows none of them"},
	{of: []string{"dataset/tasks"}, may: []string{"dataset"}, reason: "it knows where a dataset is, and nothing of what is in it"},
	{of: []string{"dataset/views"}, may: []string{"dataset", "internal/..."}, reason: "it knows the tables, and not who fills them"},
	{of: []string{"request/assembly"}, may: []string{"request/spantable", "request", "trace", "trace/naming", "internal/..."}, reason: "it makes requests of spans, and of nothing else"},
	{of: []string{"request/pick"}, may: []string{"request/spantable", "request/assembly", "request", "trace", "internal/..."}, reason: "it chooses among spans by their names, times, and values, and knows what a name means from assembly"},

	{of: []string{"convert/inputs", "convert/ranks", "convert/clocks", "convert/drawing/counters", "convert/drawing"}, chain: true,
		may: slices.Concat(filled, []string{"align", "align/matching", "trace/naming", "otlpjson", "chrometrace", "nsysexport", "format/...", "dataset", "dataset/tasks", "request", "request/assembly", "request/pick", "perfetto"}),
		// perfetto is here because inputs recognizes files that sgtrace itself wrote.
		reason: "inputs, ranks, clocks and drawing follow each other, and no report"},
	{of: []string{"convert/verify"}, may: []string{"perfetto/reader", "profile", "trace"}, reason: "it shares no code with the writers"},
	{of: []string{"convert"}, may: slices.Concat(reported, []string{"convert/inputs", "convert/ranks", "convert/clocks", "convert/drawing", "convert/verify", "dataset", "dataset/tasks", "perfetto", "chrometrace", "format/envelope"}),
		reason: "it joins the packages below it, and knows only the formats that it writes, and no report"},

	{of: base, may: reported, chain: true, reason: sees + "; and what reports share is in this order"},
	{of: single, may: slices.Concat(reported, base), reason: sees + "; and no question needs the answer to another"},
	{of: []string{"analyze/tail"}, may: slices.Concat(reported, base, []string{"analyze/transfer"}), reason: sees + "; and which transfers are slow is below why requests are"},
	{of: []string{"analyze/serverlimit"}, may: slices.Concat(reported, base, []string{"analyze/change/work"}), reason: sees + "; and what work usually takes is below what long prompts make it take"},
	{of: []string{"analyze/change"}, may: slices.Concat(reported, base, []string{"analyze/change/work"}), reason: sees + "; and what work usually takes is below when servers changed"},
	{of: []string{"analyze/telemetry/failed"}, may: slices.Concat(reported, base, []string{"analyze/telemetry"}), reason: sees + "; of the questions, it needs telemetry (what servers said)"},
	{of: []string{"analyze/telemetry/judge", "analyze/telemetry/held", "analyze/telemetry/shown", "analyze/telemetry/slow"}, may: slices.Concat(reported, base, []string{"analyze/telemetry"}), chain: true,
		reason: sees + "; of the questions, they need telemetry (what servers said)"},
	{of: []string{"analyze/collective"}, may: slices.Concat(reported, base, []string{"analyze/gpu"}), reason: sees + "; of the questions, it needs gpu (why a rank is late)"},
	{of: []string{"analyze/host", "analyze/gaps"}, chain: true, may: slices.Concat(reported, base, []string{"analyze/gpu"}), reason: sees + "; of the questions, they need gpu (where the gaps are, and the reasons that calls are for them)"},
	{of: []string{"analyze/graphs"}, may: slices.Concat(reported, base, []string{"analyze/host"}), reason: sees + "; of the questions, it needs host (what names of frames mean)"},
	{of: []string{"analyze/operators"}, may: slices.Concat(reported, base, []string{"analyze/host", "analyze/graphs"}), reason: sees + "; of the questions, it needs host (the stacks of threads, and what names in them mean) and graphs (what launched the kernels of a graph)"},
	{of: []string{"analyze/gpuloss"}, may: slices.Concat(reported, base, []string{"analyze/gpu", "analyze/operators", "analyze/graphs"}), reason: sees + "; of the questions, it needs gpu (whose numbers it judges), operators (how far they are from the roof) and graphs"},
	{of: []string{"analyze/tokens"}, may: slices.Concat(reported, base, []string{"analyze/gpu"}), reason: sees + "; of the questions, it needs gpu (steps, and how long devices worked for them)"},
	{of: []string{"analyze/overtime"}, may: slices.Concat(reported, base, []string{"analyze/gpu", "analyze/operators"}), reason: sees + "; of the questions, it needs gpu (what ran, and in which steps) and operators (how long each call took)"},
	{of: []string{"analyze/diff/pace"}, may: slices.Concat(reported, base, []string{"analyze/change/work", "analyze/diff/compare"}), reason: sees + "; of the questions, it needs work (what tokens take, in dumps without steps); and how an amount differs between captures is below what steps take"},
	{of: []string{"analyze/diff/measured"}, may: slices.Concat(reported, base, []string{"analyze/telemetry", "analyze/diff/compare", "analyze/diff/pace"}), reason: sees + "; of the questions, it needs telemetry (what is asked of servers that log), and hands what their steps take to pace"},
	{of: []string{"analyze/diff"}, may: slices.Concat(reported, base, []string{"analyze/requests", "analyze/change", "analyze/lifecycle", "analyze/serverlimit", "analyze/transfer", "analyze/gpu", "analyze/gaps", "analyze/operators", "analyze/overtime", "analyze/diff/compare", "analyze/diff/pace", "analyze/diff/measured", "analyze/diff/setup"}), reason: sees + "; of the questions, it needs requests (what they are divided by), change (which metric changed), lifecycle, serverlimit, and transfer (since when something is so) and those whose answers it compares: gpu, gaps, operators, overtime (which watches while gpu measures); and the packages in its folder are below it"},
	{of: []string{"analyze/critical"}, may: slices.Concat(reported, base, []string{"analyze/gpu", "analyze/collective", "analyze/gaps"}), reason: sees + "; of the questions, it needs collective (for whom ranks wait), gpu and gaps (what hosts did then)"},
	{of: []string{"analyze/page/chart"}, may: []string{"analyze/words", "analyze/distribution", "analyze/table", "trace", "internal/..."}, reason: "it draws numbers, and does not know what they are about"},
	{of: []string{"analyze/consequence", "analyze/finders", "analyze/gate", "analyze/whatif", "analyze/overview", "analyze/page", "analyze/fleet"}, may: slices.Concat(reported, base, questions, []string{"analyze/page/chart"}), chain: true, reason: sees},
	{of: []string{"docs"}, reason: "it has no code of its own"},

	{of: []string{"cmd/sgtrace/internal/commandline"}, may: []string{"trace", "trace/naming", "request", "analyze/words", "internal/..."},
		reason: "it reads flags and sees requests, whatever is done with them, and knows no command"},
	{of: []string{"cmd/sgtrace/internal/reports"}, may: slices.Concat(reported, base, questions, []string{"analyze/finders", "analyze/gate", "analyze/whatif", "analyze/overview", "analyze/fleet", "cmd/sgtrace/internal/commandline"}),
		reason: "it makes reports of tables that the program has read"},
	{of: []string{"cmd/sgtrace/internal/annotate"}, may: slices.Concat(reported, base, questions, []string{"analyze/finders", "convert/drawing"}),
		reason: "it puts what reports find on timelines, which know no report"},
	{of: []string{"cmd/sgtrace/internal/screen"}, may: []string{"trace", "analyze/table", "docs", "profile/kernelname", "analyze/finders", "internal/...", "cmd/sgtrace/internal/commandline", "cmd/sgtrace/internal/reports", "convert/inputs"},
		reason: "it shows text, that of pages included, and knows no command"},
	{of: []string{"cmd/sgtrace/internal/live"}, may: []string{"trace", "profile", "request", "analyze/words", "convert/inputs", "internal/...", "cmd/sgtrace/internal/commandline"},
		reason: "it prints requests while they come and serves one file, whatever else the program does"},
	{of: []string{"cmd/sgtrace"}, may: slices.Concat(reported, base, questions, []string{"analyze/finders", "analyze/gate", "analyze/whatif", "analyze/overview", "analyze/page", "cmd/sgtrace/internal/...",
		"convert", "convert/...", "otlpjson", "chrometrace", "nsysexport", "format/rocm", "request/assembly", "request/pick", "dataset", "dataset/tasks", "dataset/views", "golden", "golden/nsys", "golden/torch", "golden/simulator"}),
		reason: "it joins what convert reads and what reports say, and knows a format only where a command is named after it"},
	{of: []string{"scripts"}, may: []string{"golden/...", "internal/...", "trace"}, reason: "it runs the program, of which it is no part; of the source it prints the table of messages"},

	{of: []string{"testkit/testinput"}, may: []string{"golden/..."}, reason: "tests of every package above the simulators use it"},
	{of: []string{"testkit/testset"},
		may:    []string{"golden/...", "chrometrace/...", "otlpjson", "request/spantable", "request/...", "profile", "trace", "analyze/table", "testkit/testinput"},
		reason: "tests of every package above the formats use it, so that it imports none of these; exports bring SQLite and Parquet, which take long to link"},
	{of: []string{"testkit/testexport"}, may: []string{"golden/nsys", "golden/torch", "testkit/testset", "nsysexport/...", "profile", "trace"}, reason: "tests above the formats use it for exports"},
	{of: []string{"testkit/readback"}, may: []string{"perfetto/reader", "trace"}, reason: "it shares no code with the writers, and knows nothing of what it runs"},
}

// forTests are packages that only tests, and each other, may import.
var forTests = []string{"testkit/...", "nsysexport/internal/nsystest"}

// isIn reports whether a package matches one of the patterns.
func isIn(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		below, all := strings.CutSuffix(p, "...")
		return p == pkg || all && strings.HasPrefix(pkg+"/", below)
	})
}

// layerOf returns the index of a package's layer, or -1.
func layerOf(pkg string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return isIn(l.of, pkg) })
}

// TestImportsPointOneWay checks that packages import only what the layers in ARCHITECTURE.md allow.
func TestImportsPointOneWay(t *testing.T) {
	for pkg, imports := range packages(t) {
		i := layerOf(pkg)
		if i < 0 {
			t.Errorf("%s is new: say in docs/architecture_test.go what it may import: a report that needs no other report's answers is a name in single, anything else has a layer", pkg)
			continue
		}
		l := layers[i]
		may := l.may
		if l.chain {
			may = slices.Concat(may, l.of[:slices.Index(l.of, pkg)])
		}
		for _, imported := range imports {
			switch {
			case layerOf(imported) < 0: // new itself
			case isIn(forTests, imported) && !isIn(forTests, pkg):
				t.Errorf("%s imports %s, which is for tests", pkg, imported)
			case !isIn(may, imported):
				t.Errorf("%s must not import %s: %s", pkg, imported, l.reason)
			case layerOf(imported) > i:
				t.Errorf("%s imports %s, whose layer comes later: layers begin at the ground", pkg, imported)
			}
		}
	}
}

// TestArchitecture checks that ARCHITECTURE.md has one row per package, and that the code it
// mentions exists.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	all := packages(t)
	code := regexp.MustCompile("`([^`]+)`")
	rows := map[string]int{}
	_, table, _ := strings.Cut(string(page), "\n## Where things are\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
				rows[m[1]]++
				if _, ok := all[m[1]]; !ok {
					t.Errorf("ARCHITECTURE.md has a row for %s, which is no package", m[1])
				}
			}
		}
	}
	for pkg := range all {
		if rows[pkg] != 1 {
			t.Errorf("docs/ARCHITECTURE.md has %d rows for %s in the table of \"Where things are\", not one: say there what the package is", rows[pkg], pkg)
		}
	}

	_, picture, _ := strings.Cut(string(page), "\nInside `analyze`, ")
	picture, _, _ = strings.Cut(picture, "\n## ")
	for pkg := range all {
		name, ok := strings.CutPrefix(pkg, "analyze/")
		if ok && !isIn(forTests, pkg) && !slices.Contains(strings.FieldsFunc(picture, func(r rune) bool { return strings.ContainsRune(" \n,()", r) }), name) {
			t.Errorf("docs/ARCHITECTURE.md lacks %s in the lines below \"Inside `analyze`\", which say what it imports: a name, unless it needs the answers of another", name)
		}
	}

	folder := map[string]string{} // folder by package name
	for pkg := range all {
		folder[path.Base(pkg)] = pkg
	}
	names := map[string]map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*(?:\\.[A-Z]\\w*)?)`").FindAllStringSubmatch(string(page), -1) {
		pkg, ok := folder[m[1]]
		if !ok {
			continue
		}
		if names[pkg] == nil {
			names[pkg] = namesOf(t, pkg)
		}
		if !names[pkg][m[2]] {
			t.Errorf("ARCHITECTURE.md names %s.%s, which is not in %s", m[1], m[2], pkg)
		}
	}
}

// packages returns the packages of the module by folder, with the packages of the module that they
// import outside of tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != ".." && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../")
		imports := all[pkg]
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if imported, ok := strings.CutPrefix(imported, modulePath); ok && !slices.Contains(imports, imported) {
				imports = append(imports, imported)
			}
		}
		all[pkg] = imports
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// namesOf returns the declarations of a package: Name for all, and Type.Name for methods and
// fields.
func namesOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			addNames(names, d)
		}
	}
	return names
}

func addNames(names map[string]bool, d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok {
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		names[name] = true
		return
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, id := range s.Names {
				names[id.Name] = true
			}
		case *ast.TypeSpec:
			names[s.Name.Name] = true
			if is, ok := s.Type.(*ast.StructType); ok {
				for _, field := range is.Fields.List {
					for _, id := range field.Names {
						names[s.Name.Name+"."+id.Name] = true
					}
				}
			}
		}
	}
}
