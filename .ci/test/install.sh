# shellcheck shell=bash
# What the tests need and the machine lacks: packages of Debian by apt, and inside of the checkout those of Python and Node.
# Sourced by ./test.

# The SDKs of OpenAI and of the Model Context Protocol, the reference verifier of webhook signatures, the messages of OpenTelemetry, the
# reader that judges signed videos, what the examples of engines need, the builder of their package, and the checker of its types.
readonly PYTHON_PACKAGES=(openai==3.52.0 mcp==2.3.0 standardwebhooks==1.1.0 opentelemetry-proto==1.45.2 c2pa-python==0.38.1 numpy==2.4.6
  hatchling==1.33.0 mypy==2.4.1)
# Clients of other makers. LiteLLM's proxy imports the packages from fastapi on; its extra `proxy` would bring 200 MB more.
readonly PYTHON_CLIENTS=(openrouter==1.3.84 portkey-ai==2.3.4 litellm==1.110.2 fastapi==0.165.0 fastapi-sso==0.23.0 uvicorn==0.54.0
  uvloop==0.23.0 orjson==3.13.0 python-multipart==0.0.34 apscheduler==3.11.3 pyjwt==2.15.1 backoff==2.2.1 rich==15.0.0 websockets==15.0.1
  cryptography==50.0.2 redis==8.1.0 semver==3.1.2 expression==5.8.0 soundfile==0.14.0)
readonly OPENAI_NODE=6.49.0
# Clients of other makers, and what n8n's node sends forms with.
readonly NODE_CLIENTS=(@openrouter/sdk@1.3.19 ai@7.0.173 @openrouter/ai-sdk-provider@3.1.0 @tanstack/ai@0.52.3 @tanstack/ai-openai@0.22.4
  @tanstack/ai-openrouter@0.19.6 portkey-ai@3.1.0 form-data@4.0.6)
# The package with n8n's OpenAI node, without what it depends on: several hundred megabytes.
readonly N8N_NODES=@n8n/n8n-nodes-langchain@2.41.1
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
  local python=.venv/bin/python wanted missing=() alone=()
  [ -x $python ] || python3 -m venv .venv || return
  for wanted in "${PYTHON_PACKAGES[@]}" "${PYTHON_CLIENTS[@]}"; do
    $python -c "from importlib.metadata import version; assert version('${wanted%%==*}') == '${wanted##*==}'" 2>/dev/null && continue
    # What the reader depends on is for building it.
    case "$wanted" in
      c2pa-python*) alone+=("$wanted") ;;
      *) missing+=("$wanted") ;;
    esac
  done
  [ $((${#missing[@]} + ${#alone[@]})) -eq 0 ] && return
  echo "pip installs ${missing[*]} ${alone[*]} into .venv (about 760 MB)" >&3
  if [ ${#alone[@]} -gt 0 ]; then
    $python -m pip install --disable-pip-version-check --no-deps "${alone[@]}" || return
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    $python -m pip install --disable-pip-version-check "${missing[@]}"
  fi
}

# Debian 12 ships Node 18; the SDK needs a newer one, which npm itself carries.
node_runtime() {
  node_is_new_enough && return
  echo "npm installs Node.js 22 into $NODE_TOOLS (about 120 MB)" >&3
  npm install --prefix "$NODE_TOOLS" --no-save --no-package-lock "node@22"
}

node_sdk() {
  local wanted missing=0 all=("openai@$OPENAI_NODE" "${TYPED_CLIENT[@]}" "${BROWSER_TOOLS[@]}" "${NODE_CLIENTS[@]}")
  for wanted in "${all[@]}" "$N8N_NODES"; do
    grep -qs "\"version\": \"${wanted##*@}\"" "$NODE_FOLDER/node_modules/${wanted%@*}/package.json" || missing=1
  done
  [ "$missing" = 0 ] && return
  echo "npm installs ${all[*]} $N8N_NODES into $NODE_FOLDER (about 180 MB)" >&3
  mkdir -p "$NODE_FOLDER"
  npm install --prefix "$NODE_FOLDER" --no-save --no-package-lock "${all[@]}" && n8n_nodes
}

# After npm, which removes what it has not installed itself.
n8n_nodes() {
  local folder="$NODE_FOLDER/node_modules/${N8N_NODES%@*}" packed
  mkdir -p "$folder" && packed=$(npm pack --silent --pack-destination "$TARGET" "$N8N_NODES") &&
    tar --extract --file "$TARGET/$packed" --directory "$folder" --strip-components 1 && rm "$TARGET/$packed"
}
