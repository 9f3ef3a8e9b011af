# What one can do here: `just` lists it. Each recipe is a thin name for a command that also works without just.

features := "kinora-test-e2e/in-process,kinora-blobs/conformance,kinora-engine/conformance,kinora-store/conformance"

# List the recipes
default:
    @just --list --unsorted

# Start the service; the flags are those of `kinora serve`
[group('run')]
serve *flags:
    cargo run --release -- serve {{flags}}

# Make one video without a server: just generate "A paper boat" -o boat.mp4
[group('run')]
[positional-arguments]
generate *flags:
    cargo run --release -- generate --local "$@"

# Build the binary: target/release/kinora
[group('build')]
build:
    cargo build --release

# Make the wheel, the Debian package and the tarballs
[group('build')]
packages:
    packaging/build

# Format, lint and test everything, as continuous integration does
[group('test')]
test:
    ./test

# Install the tools that the tests need
[group('test')]
install:
    ./test install

# Test one crate, by its folder: just crate contract
[group('test')]
crate name *filter:
    cargo test -p {{ if name == "kinora" { "kinora" } else { "kinora-" + name } }} {{filter}}

# Test the real binary over real sockets: just e2e kills::
[group('test')]
e2e *filter:
    cargo test -p kinora-test-e2e --test e2e -- {{filter}}

# Test what a client sees over HTTP, inside of the test's process
[group('test')]
http *filter:
    cargo test -p kinora-test-e2e --features in-process --test http -- {{filter}}

# Test the web page in Chromium
[group('test')]
page:
    cargo test -p kinora-test-e2e --test e2e -- page::

# Run a part of the tests that take hours; `./soak --help` lists the parts
[group('test')]
soak *parts:
    ./soak {{parts}}

# Run each fuzz target for a while
[group('test')]
fuzz seconds="30":
    fuzz/run {{seconds}}

# Test neural engines in C++ with random weights (hours)
[group('test')]
neural *flags:
    ./neural {{flags}}

# Test pipelines of diffusers behind Kinora: all, or `overhead`
[group('test')]
engines *flags:
    ./engines-test {{flags}}

# Run each model of the catalogue once on this machine's GPU
[group('test')]
gpu *flags:
    ./gpu-models {{flags}}

# Measure: requests, metered, processes, stores, frames, encoded
[group('test')]
bench *parts:
    ./bench {{parts}}

# Check formatting and lints
[group('check')]
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --features "{{features}}" -- -D warnings

# Format the code
[group('check')]
fmt:
    cargo fmt --all

# Check the rules of the repository: links, generated pages, layers, file lengths
[group('check')]
tidy:
    cargo test -p kinora-tidy

# Check licences, sources and advisories of dependencies
[group('check')]
deny:
    cargo deny check

# Check images, units, charts and their scripts
[group('check')]
deploy:
    deploy/check

# Check the packages in target/packages
[group('check')]
packaging:
    packaging/check

# Make the site of the documentation in target/site
[group('docs')]
site:
    docs/build

# Write the generated pages and tables anew
[group('docs')]
docs-update:
    KINORA_UPDATE_DOCS=1 cargo test -p kinora-test-e2e --features in-process --test http openapi
    KINORA_UPDATE_DOCS=1 cargo test -p kinora-tidy

# Take the pictures of Studio anew
[group('docs')]
screenshots:
    docs/screenshots
