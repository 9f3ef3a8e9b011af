# shellcheck shell=bash
# What the tests need and the machine lacks: packages of Debian by apt, and inside of the checkout those of Python and Node.
# Sourced by ./test.

# The SDKs of OpenAI and of the Model Context Protocol, the reference verifier of webhook signatures, the messages of OpenTelemetry, the
# reader that judges signed videos, what the examples of engines need, the builder of their package, and the checker of its types.
readonly PYTHON_PACKAGES=(openai==3.52.0 mcp==2.3.0 standardwebhooks==1.1.0 opentelemetry-proto==1.45.2 c2pa-python==0.38.1 numpy==2.4.6
  hatchling==1.33.0 mypy==2.4.1)
readonly OPENAI_NODE=6.49.0
# The generator of typed clients, what its clients call, and their compiler.
readonly TYPED_CLIENT=(openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3)
# They drive the web page in Chromium, and judge it for assistive technology.
readonly BROWSER_TOOLS=(playwright-core@1.64.1 axe-core@4.11.0)
readonly NODE_MAJOR_MIN=20
# Where a newer Node goes when the system's is too old.
readonly NODE_TOOLS="$TARGET/node-tools" NODE_FOLDER=crates/test-e2e/node

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    echo "missing, and neither root nor sudo is here to install it: $*" >&2
    return 1
  fi
}

node_is_new_enough() {
  command -v node >/dev/null &&
    [ "$(node -p 'process.versions.node.split(".")[0]')" -ge "$NODE_MAJOR_MIN" ]
}

system_packages() {
  local missing=() program=${CXX:-c++}
  # It may come with a wrapper in front of it, as `ccache g++`.
  if [ -n "${CXX:-}" ] && ! command -v "${program%% *}" >/dev/null; then
    echo "CXX names '$CXX', which is not there: unset it, or name a C++ compiler" >&2
    return 1
  fi
  command -v c++ >/dev/null || missing+=(g++)
  # Without nasm everything works, but the video encoder is half as fast.
  command -v nasm >/dev/null || missing+=(nasm)
  command -v ffmpeg >/dev/null || missing+=(ffmpeg)
  # Reads the labels of files.
  command -v exiftool >/dev/null || missing+=(libimage-exiftool-perl)
  command -v curl >/dev/null || missing+=(curl)
  # Makes keys in the forms that operators have.
  command -v openssl >/dev/null || missing+=(openssl)
  command -v strace >/dev/null || missing+=(strace)
  # The examples of docs/cli.md.
  command -v jq >/dev/null || missing+=(jq)
  # Make the packages.
  command -v objdump >/dev/null || missing+=(binutils)
  command -v dpkg-shlibdeps >/dev/null || missing+=(dpkg-dev)
  # A throw-away server of it.
  command -v initdb >/dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || missing+=(postgresql)
  # A pooler before it.
  command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
  # Sets text as captions do, to compare.
  command -v pango-view >/dev/null || missing+=(pango1.0-tools)
  # Moves the clock under the service.
  compgen -G '/usr/lib*/*/faketime/libfaketimeMT.so.1' >/dev/null || missing+=(libfaketime)
  command -v python3 >/dev/null || missing+=(python3)
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  command -v node >/dev/null || missing+=(nodejs)
  command -v npm >/dev/null || missing+=(npm)
  # Opens the web page.
  command -v chromium >/dev/null || missing+=(chromium)
  [ ${#missing[@]} -eq 0 ] && return
  echo "apt installs ${missing[*]}" >&3
  as_root apt-get update || return
  # Ends with an error, as nothing is installed; says how much it would be.
  as_root apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
    grep -E '^(Need to get|After this operation|[0-9]+ upgraded)' | sed 's/^/  /' >&3 || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

rust_components() {
  command -v cargo >/dev/null || { echo "install Rust first: https://rustup.rs" >&2; return 1; }
  cargo fmt --version && cargo clippy --version && return
  rustup component add rustfmt clippy
}

python_packages() {
  local python=.venv/bin/python wanted missing=()
  [ -x $python ] || python3 -m venv .venv || return
  for wanted in "${PYTHON_PACKAGES[@]}"; do
    $python -c "from importlib.metadata import version; assert version('${wanted%%==*}') == '${wanted##*==}'" 2>/dev/null || missing+=("$wanted")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "pip installs ${missing[*]} into .venv (about 270 MB)" >&3
  for wanted in "${missing[@]}"; do
    # What the reader depends on is for building it.
    case "$wanted" in
      c2pa-python*) $python -m pip install --disable-pip-version-check --no-deps "$wanted" || return ;;
      *) $python -m pip install --disable-pip-version-check "$wanted" || return ;;
    esac
  done
}

# Debian 12 ships Node 18; the SDK needs a newer one, which npm itself carries.
node_runtime() {
  node_is_new_enough && return
  echo "npm installs Node.js 22 into $NODE_TOOLS (about 120 MB)" >&3
  npm install --prefix "$NODE_TOOLS" --no-save --no-package-lock "node@22"
}

node_sdk() {
  local wanted missing=0
  for wanted in "openai@$OPENAI_NODE" "${TYPED_CLIENT[@]}" "${BROWSER_TOOLS[@]}"; do
    grep -qs "\"version\": \"${wanted#*@}\"" "$NODE_FOLDER/node_modules/${wanted%@*}/package.json" || missing=1
  done
  [ "$missing" = 0 ] && return
  echo "npm installs openai@$OPENAI_NODE ${TYPED_CLIENT[*]} ${BROWSER_TOOLS[*]} into $NODE_FOLDER (about 80 MB)" >&3
  mkdir -p "$NODE_FOLDER"
  npm install --prefix "$NODE_FOLDER" --no-save --no-package-lock "openai@$OPENAI_NODE" "${TYPED_CLIENT[@]}" "${BROWSER_TOOLS[@]}"
}
