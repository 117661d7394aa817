# make          build the tool into bin/
# make test     format, vet, lint and all tests, with the race detector
# make bench    measurements, as ratios against named tools in the same run
# make fuzz     every fuzz target for FUZZTIME (default 1m)
# make tlc      run TLC on every configuration in designs/ (see designs/README.md)
# make evidence write docs/evidence anew
GO       ?= go
FUZZTIME ?= 1m

.PHONY: build test lint bench fuzz tlc evidence generate clean

build:
	$(GO) build -o bin/linearize ./cmd/linearize

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet -race ./...
	@# Built as the tests are: AWS's clients, which take minutes to compile, are compiled once.
	GOFLAGS="$$($(GO) env GOFLAGS) -race" $$($(GO) tool -n staticcheck) ./...

test: lint
	$(GO) test -race -timeout 20m ./...

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m ./...

fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

tlc:
	designs/tlc.sh

evidence: build
	bin/linearize evidence

generate:
	$(GO) generate ./...

clean:
	rm -rf bin
