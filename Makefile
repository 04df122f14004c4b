# Everything a newcomer or CI runs. Only Go and make are needed.

GO ?= go
export CGO_ENABLED ?= 0

# Without the folder in what is compiled, the build cache serves every checkout.
export GOFLAGS := $(GOFLAGS) -trimpath

# Tools of which no build depends: 'go run' gets them through the module proxy.
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
NFPM ?= github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
GOVULNCHECK ?= golang.org/x/vuln/cmd/govulncheck@v1.8.0

# How long the tests of a package may take on a slow machine.
TIMEOUT ?= 10m

# Tests that collect garbage half as often take less CPU time; with less collecting, fresh pages cost
# more than it saves. Those that measure the program's memory run it without this.
LAZYGC = GOGC=200 GOMEMLIMIT=1GiB

.PHONY: build demo test scale race rates fuzz bench lint vuln cross fallback docs dist dist-check clean

build:
	$(GO) build -buildvcs=auto -ldflags='-s -w' -o bin/sgtrace ./cmd/sgtrace

# A small simulated incident, converted and reported.
demo: build
	@sh scripts/demo.sh bin/sgtrace demo

# What CI runs.
test: lint
	@[ -d "$${SGTRACE_SHARED:-../shared}/data" ] || echo "note: no shared data ($$""SGTRACE_SHARED, ../shared): tests on real dumps skip"
	@command -v "$${SGTRACE_TRACE_PROCESSOR:-trace_processor_shell}" >/dev/null || echo "note: no trace_processor_shell ($$""SGTRACE_TRACE_PROCESSOR, PATH): tests with Perfetto's importer skip"
	@for b in "$${SGTRACE_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do command -v "$$b" >/dev/null && exit; done; echo "note: no Chromium ($$""SGTRACE_CHROMIUM, PATH): tests of HTML reports in a browser skip"
	$(LAZYGC) $(GO) test -vet=off -ldflags=-s -timeout $(TIMEOUT) ./... # lint has vetted; packages without tests are built, too

# A dataset that Slurm fills and SQL engines read, with the real ones: Debian's packages and npm,
# into this folder. What cannot be had is skipped, which is said.
scale: export SGTRACE_SCALE ?= $(HOME)/.cache/sgtrace-scale
scale:
	$(GO) test -count=1 -timeout $(TIMEOUT) ./testkit/readback
	$(GO) test -count=1 -timeout $(TIMEOUT) -v -run 'TestViewsAreReports|TestQuestions' ./cmd/sgtrace
	@bash scripts/scale.sh "$$SGTRACE_SCALE"

# The race detector needs cgo.
race:
	CGO_ENABLED=1 $(GO) test -race -timeout 1h ./...

# In how many simulated runs the reports are right, which takes hours: docs/RATES.md.
rates:
	SGTRACE_SEEDS=$${SGTRACE_SEEDS:-100} $(GO) run ./scripts pages rates ./analyze/... ./convert

# gofmt, go vet and staticcheck, all of their checks but for the exceptions that
# staticcheck.conf explains.
lint:
	@fmt=$$(gofmt -l .); if [ -n "$$fmt" ]; then echo "gofmt would change:"; echo "$$fmt"; exit 1; fi
	$(GO) vet ./...
	@if $(GO) run $(STATICCHECK) -version >/dev/null 2>&1; then echo "staticcheck ./..."; $(GO) run $(STATICCHECK) ./...; \
	else echo "note: $(STATICCHECK) is neither in the module cache nor within reach: not run"; fi

# Known vulnerabilities of what the program is built of. The database may be a copy:
# GOVULNDB=file:///PATH.
GOVULNDB ?= https://vuln.go.dev
vuln:
	@out=$$($(GO) run $(GOVULNCHECK) -db $(GOVULNDB) ./... 2>&1); status=$$?; echo "$$out"; \
	case "$$out" in *"fetching vulnerabilities"*) echo "note: $(GOVULNDB) is out of reach: NOTHING WAS CHECKED"; exit 0;; esac; exit $$status

# Code that is only for other systems and processors, tests included.
cross:
	@for target in linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64 linux/riscv64; do \
	echo "vet $$target"; CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet ./... || exit; done

# What uses sonic, where sonic has no code of its own and falls back to encoding/json: on
# processors other than amd64 and arm64, and before it knows a new version of Go. The
# tag is the one that its files for that case ask for. sonic says so on stderr then, which
# is what the skipped script compares.
fallback:
	$(GO) vet -tags go1.28 ./...
	$(GO) test -timeout $(TIMEOUT) -tags go1.28 ./request/assembly
	$(GO) test -timeout $(TIMEOUT) -tags go1.28 -run 'JSON|Sonic|Hostile|EveryReport|Overview' -skip Browser ./analyze/...
	$(GO) test -timeout $(TIMEOUT) -tags go1.28 -run 'Scripts|Examples|Tutorial|Schema' -skip 'TestScripts/merge$$' ./cmd/sgtrace

# Pages that are made from the source. A test fails when they are stale.
docs:
	@$(GO) run ./scripts pages formats >docs/FORMATS.md.new && mv docs/FORMATS.md.new docs/FORMATS.md
	@$(GO) run ./scripts pages licenses >licenses.new && mv licenses.new cmd/sgtrace/internal/commandline/licenses.txt
	$(GO) test -timeout $(TIMEOUT) ./cmd/sgtrace/internal/reports ./analyze/finders ./analyze/gate -run 'TestPage' -update
	$(GO) test -timeout $(TIMEOUT) ./cmd/sgtrace -run 'TestTutorial|TestSchemas|TestSkill' -update
	$(GO) test -timeout $(TIMEOUT) ./dataset -run 'TestReference' -update

# Archives for Linux, macOS and Windows, packages for Linux, and their checksums. The same
# commit and version of Go give the same bytes, which dist-check shows.
DIST = $(GO) run ./scripts dist $$($(GO) run $(NFPM) --version >/dev/null 2>&1 && echo -nfpm $(NFPM))
dist:
	@$(GO) run $(NFPM) --version >/dev/null 2>&1 || echo "note: $(NFPM) is neither in the module cache nor within reach: no packages"
	$(DIST) -o dist

dist-check: dist
	@again=$$(mktemp -d) && trap 'rm -rf "$$again"' EXIT && GOCACHE=$$again/cache $(DIST) -o $$again/dist && \
	cmp dist/SHA256SUMS $$again/dist/SHA256SUMS && echo "both builds have the same bytes"

FUZZTIME ?= 30s
fuzz:
	@sh scripts/fuzz.sh $(FUZZTIME)

# Benchmarks, and the large dump against a bare decompression and a bare decode.
bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./scripts bench bin/sgtrace

clean:
	rm -rf bin demo dist
