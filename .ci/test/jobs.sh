# shellcheck shell=bash
# The test binaries as jobs that run beside each other. Sourced by ./test.

# Many tests wait for a process most of their time.
THREADS=$((2 * $(nproc)))
# How many jobs run at a time: one more than cores, since most wait for processes and disks much of their time.
LANES=$(($(nproc) < 4 ? $(nproc) + 1 : 4))
readonly THREADS LANES

# The end-to-end tests whose client repeats what failed, while one call in a hundred of the stores does: what a task
# can meet in its life. The others count calls, cut the service off, speak raw bytes, or look at what no store changes.
failing_stores() {
  local module
  case "$1" in
    http) for module in downloads drafts edits events idempotency lifecycle long_polls previews; do printf ' %s::' "$module"; done ;;
    # How much memory a task takes is measured where no run is repeated.
    e2e) printf ' %s' events:: idempotency:: moves:: references:: restarts:: stopping:: --skip references::p13_bombs ;;
  esac
}

# The tests of what a client sees, through the binary with each service over a database and a bucket of its own. Other
# modules are about one store. Of these, some tests look into a store's files, stop at a point of one, or turn the clock
# by which SQLite judges. Over PostgreSQL a resumed stream of a project may repeat a state (docs/api.md), and the test of
# it allows none.
apart_stores() {
  local name
  case "$1" in
    http) printf ' --skip %s' downloads::an_address_past_its_time events::a_project_s_stream_goes_on ;;
    e2e)
      printf ' %s::' bounds events idempotency keys priorities references restarts secrets stopping
      for name in cluster:: events::p16_a_stop_ends_streams keys::an_expired_key references::a_reference_is_fetched_before references::p13_bombs \
        restarts::a_second_service_on_one_folder secrets::p14_no_file_holds_a_key stopping::a_completed_task_is_deleted_with_its_files; do
        printf ' --skip %s' "$name"
      done
      ;;
  esac
}

# One line for each test binary of the workspace: name, folder to run in, file.
test_binaries() {
  cargo test --workspace "${TARGETS[@]}" --features "$FEATURES" --no-run --message-format json 2>"$LOGS/binaries.txt" | python3 -c '
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
        folder = os.path.dirname(message["manifest_path"])
        name = os.path.basename(folder)
        target = message["target"]
        if target["kind"] == ["test"]:
            name += " " + target["name"]
        print(name, folder, message["executable"], sep="\t")'
}

# What the compiler judges beside the build, which has the lints and the documentation: the examples in the documentation,
# and the features of a release, which those of tests could hide. Opus instead of AAC is tested in all builds. One small
# test gives dependencies the features that they have already, so that only our crates are looked at again. Without the
# folder that other jobs name: ring's build asks for it, and would be repeated each time with all that depends on it.
compiler_checks() {
  local ours="RUSTC_WORKSPACE_WRAPPER=$PWD/.ci/metadata cargo build --workspace --lib --bins --test tidy"
  printf '%s' "unset CARGO_MANIFEST_DIR && docs/build && cargo test --doc --workspace --features $FEATURES && $ours && $ours --no-default-features"
}

# The package for engines in Python: its types, its tests with numpy and without, and its wheel as it is installed. Its summary becomes
# one of ours.
python_package() {
  local python=$PWD/.venv/bin/python pip="-m pip --quiet --disable-pip-version-check" wheels=$TARGET/test-wheels
  printf '%s' "$python -m mypy --cache-dir $TARGET/test-mypy" \
    " && $python -m unittest discover -s tests && python3 -m unittest discover -s tests" \
    " && rm -rf $wheels && $python $pip wheel --no-deps --no-build-isolation --wheel-dir $wheels ." \
    " && $python $pip install --no-deps --no-index --target $wheels/installed $wheels/*.whl" \
    " && KINORA_WHEEL=$wheels/installed $python -m unittest discover -s tests_wheel" \
    " && echo 'test result: ok. 1 passed; 0 failed; 0 ignored;'"
}

# Everything that runs beside each other, a job a line: its rank, niceness, name, folder, command. Those that last longest
# come first, and the longest of the end-to-end tests are jobs of their own. What only calculates steps back for what
# waits, talks and is looked at: compilers, simulated lives, pixels.
test_jobs() {
  local name folder file binaries lasting="kills power page" back=10
  binaries=$(test_binaries) || return
  [ -n "$binaries" ] || return
  local alone='' tab=$'\t'
  for name in $lasting; do alone+=" --skip $name::"; done
  while IFS=$'\t' read -r name folder file; do
    if [ "$name" = "test-e2e e2e" ]; then
      echo "1${tab}0${tab}end to end${tab}$folder${tab}$file$alone"
      echo "2${tab}0${tab}end to end, stores failing${tab}$folder${tab}KINORA_FAULT_PPM=5000 $file$(failing_stores e2e)"
      echo "2${tab}0${tab}end to end, PostgreSQL and S3${tab}$folder${tab}KINORA_E2E_STORE=postgres+s3 $file$(apart_stores e2e)"
      for name in $lasting; do echo "2${tab}0${tab}end to end, $name${tab}$folder${tab}$file $name::"; done
    elif [ "$name" = "test-e2e http" ]; then
      echo "2${tab}0${tab}HTTP in process${tab}$folder${tab}$file"
      echo "2${tab}0${tab}HTTP in process, stores failing${tab}$folder${tab}KINORA_FAULT_PPM=5000 $file$(failing_stores http)"
      echo "2${tab}0${tab}HTTP, PostgreSQL and S3${tab}$folder${tab}KINORA_MALFORMED=500 KINORA_E2E_STORE=postgres+s3 $file$(apart_stores http)"
    else
      case "$name" in
        "test-sim sim" | "engine-storyboard storyboard" | "media-decode decode" | "media media") echo "3${tab}$back${tab}$name${tab}$folder${tab}$file" ;;
        "worker worker") echo "3${tab}0${tab}$name${tab}$folder${tab}$file" ;;
        *) echo "5${tab}0${tab}$name${tab}$folder${tab}$file" ;;
      esac
    fi
  done <<<"$binaries"
  # Its largest file has debug code in it: not worth a minute of compression.
  echo "3${tab}0${tab}packages${tab}$PWD${tab}rm -rf $TARGET/test-packages && DPKG_DEB_COMPRESSOR_LEVEL=1 packaging/build --binary $KINORA_E2E_BINARY --out $TARGET/test-packages && packaging/check $TARGET/test-packages"
  echo "3${tab}0${tab}python engines${tab}$PWD/python${tab}$(python_package)"
  echo "1${tab}$back${tab}features and documentation${tab}$PWD${tab}$(compiler_checks)"
}

# side_by_side JOB: as a step, but a failure lets the other jobs go on.
side_by_side() {
  local nice name folder command log start=$SECONDS processor
  IFS=$'\t' read -r _ nice name folder command <<<"$1"
  log="$LOGS/tests-${name//[ ,]/-}.log"
  if measured "$log" nice -n "$nice" env --chdir="$folder" CARGO_MANIFEST_DIR="$folder" bash -c "$command"; then
    printf '  %-32sok      %4d s, of processors %4d s\n' "$name" $((SECONDS - start)) "$processor"
    return
  fi
  # In one piece, since other jobs print too.
  printf '  %-32sFAILED  %4d s, of processors %4d s\n\n%s\n' "$name" $((SECONDS - start)) "$processor" "$(show_failure "$name" "$log")"
  return 1
}

tests() {
  local start=$SECONDS jobs
  printf '%-34s\n' "tests"
  if ! jobs=$(test_jobs | sort --stable --key 1,1); then
    cat "$LOGS/binaries.txt"
    failed_steps=1
  elif ! xargs -P "$LANES" -d '\n' -n 1 bash -c 'side_by_side "$1"' tests <<<"$jobs"; then
    failed_steps=1
  fi
  printf '%-34s%-6s  %4d s  (%d s in all)\n' "all tests" "$([ "$failed_steps" = 0 ] && echo ok || echo FAILED)" \
    $((SECONDS - start)) "$SECONDS"
  [ "$failed_steps" = 0 ] && return
  finish
  exit 1
}
