# Everything a newcomer or CI runs. Only Go and make are needed.

GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build demo test race fuzz bench lint clean

build:
	$(GO) build -trimpath -buildvcs=auto -ldflags='-s -w' -o bin/sgtrace ./cmd/sgtrace

# A small simulated incident, converted and reported.
demo: build
	@sh scripts/demo.sh bin/sgtrace demo

# What CI runs.
test: lint
	@[ -d "$${SGTRACE_SHARED:-../shared}/data" ] || echo "note: no shared data ($$""SGTRACE_SHARED, ../shared): tests on real dumps skip"
	@command -v "$${SGTRACE_TRACE_PROCESSOR:-trace_processor_shell}" >/dev/null || echo "note: no trace_processor_shell ($$""SGTRACE_TRACE_PROCESSOR, PATH): tests with Perfetto's importer skip"
	@for b in "$${SGTRACE_CHROMIUM:-chromium}" chromium-browser google-chrome google-chrome-stable; do command -v "$$b" >/dev/null && exit; done; echo "note: no Chromium ($$""SGTRACE_CHROMIUM, PATH): tests of HTML reports in a browser skip"
	$(GO) build ./...
	$(GO) test ./...

# The race detector needs cgo.
race:
	CGO_ENABLED=1 $(GO) test -race ./...

lint:
	@fmt=$$(gofmt -l .); if [ -n "$$fmt" ]; then echo "gofmt would change:"; echo "$$fmt"; exit 1; fi
	$(GO) vet ./...

FUZZTIME ?= 30s
fuzz:
	@sh scripts/fuzz.sh $(FUZZTIME)

# Benchmarks, and the large dump against a bare decompression and a bare decode.
bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...
	@sh scripts/bench.sh bin/sgtrace

clean:
	rm -rf bin demo dist
