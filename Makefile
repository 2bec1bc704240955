# `make check` is what CI runs.
CARGO ?= cargo

.PHONY: help check lint docs test conformance release interop real deny fuzz bench bench-gateway bench-handles bench-seal bench-sessions matrix

help:
	@echo "check    format, lints, documentation, every test (installs the real servers first)"
	@echo "lint     format and lints"
	@echo "docs     documentation"
	@echo "test     every test; the real servers must be installed (make interop)"
	@echo "conformance  the official suite against a server with sealed states, and through the gateway (installs it first)"
	@echo "release  build for release, prove the probe on its twins, and show the gateway"
	@echo "interop  install the real servers into interop/.env"
	@echo "real     probe published servers and the SDKs' defaults, and print one table"
	@echo "matrix   every twin against both checks, as a table"
	@echo "deny     licences, advisories and bans of dependencies (needs cargo-deny)"
	@echo "fuzz     one minute for each fuzz target (needs cargo-fuzz and a nightly toolchain)"
	@echo "bench    run times, size of the binary and peak memory, in one run"
	@echo "bench-gateway  the gateway beside nginx and other proxies, in one run (needs nginx, node and PostgreSQL)"
	@echo "bench-handles  the library beside floors and a peer, in one run (needs PostgreSQL)"
	@echo "bench-sessions  what the layers over HTTP add to a request, in one run"
	@echo "bench-seal  sealed states beside the bare cipher and the codecs of the SDKs, in one run"

check: interop lint docs test conformance release

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings
	for part in handles probe twins gateway; do \
	    $(CARGO) clippy --package handfast-cli --no-default-features --features $$part --locked -- -D warnings || exit 1; \
	done
	for part in sqlite postgres rmcp tokens http metrics http,tokens tracing verify; do \
	    $(CARGO) clippy --package handfast --no-default-features --features $$part --locked -- -D warnings || exit 1; \
	done

release:
	$(CARGO) run --release --locked -- prove
	$(CARGO) run --release --locked -- demo

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

test:
	$(CARGO) test --workspace --all-features --locked

conformance:
	sh interop/conformance/run.sh

interop:
	sh interop/install.sh

real:
	sh interop/real.sh

matrix:
	$(CARGO) test --package handfast-probe --test matrix --locked -- --nocapture

deny:
	$(CARGO) deny check

fuzz:
	sh fuzz/run.sh

bench:
	python3 benches/run.py

bench-gateway:
	python3 benches/gateway.py

bench-handles:
	python3 benches/handles.py

bench-seal:
	python3 benches/seal.py

bench-sessions:
	$(CARGO) run --release --manifest-path benches/sessions/Cargo.toml
