# shellcheck shell=bash
# One step after the other, each with a log of its own, a line on the terminal, and its part in the closing line.
# Sourced by ./test.

# How often a step that lasts says where it is, in seconds.
readonly PULSE_SECONDS=30
# Where steps speak to people: their standard output is a log.
exec 3>&1

failed_steps=0
steps_run=0

# Sums the `test result:` lines of all logs and prints the closing line.
finish() {
  # shellcheck disable=SC2016
  local sum='/^test result:/ { gsub(/;/, ""); passed += $4; failed += $6; skipped += $8 }
    END {
      if (failed == 0) failed = steps
      printf "%d passed, %d failed", passed, failed
      if (skipped) printf ", %d skipped", skipped
      print ""
    }'
  cat "$LOGS"/*.log 2>/dev/null | awk -v steps="$failed_steps" "$sum"
}

# show_failure NAME LOG
show_failure() {
  local name=$1 log=$2
  tail -n 40 "$log"
  # What failed may lie far above the end.
  printf '\nWhat failed:\n'
  grep -aE '^test .* FAILED$|^error' "$log" || true
  awk '/^failures:$/ { inside = 1 } /^test result:/ { inside = 0 } inside' "$log" | tail -n 300
  printf '\n%s failed; its whole output is in %s\n' "$name" "$log"
}

# measured LOG COMMAND...: runs with all output in LOG; leaves the processor seconds that it took in $processor.
measured() {
  local log=$1 status=0 TIMEFORMAT='%U %S' user system
  shift
  { time "$@" >"$log" 2>&1 </dev/null; } 2>"$log.time" || status=$?
  read -r user system <"$log.time"
  rm "$log.time"
  processor=$((${user%.*} + ${system%.*}))
  return "$status"
}

# pulse LOG: says again and again how long it has been, and the last line of a log.
pulse() {
  local start=$SECONDS line idle
  # A pause without a process, which would outlive this one.
  exec {idle}<> <(:)
  while ! read -r -t "$PULSE_SECONDS" -u "$idle"; do
    line=$(tail -c 400 "$1" 2>/dev/null | tr '\r' '\n' | tail -n 1 | cut -c 1-100)
    printf '  %4d s: %s\n' $((SECONDS - start)) "$line"
  done
}

# step NAME COMMAND...: runs with its output in a log; a failure shows that and ends the run.
step() {
  local name=$1 start=$SECONDS log processor beat status=ok
  shift
  steps_run=$((steps_run + 1))
  log="$LOGS/$(printf '%02d' "$steps_run")-${name// /-}.log"
  pulse "$log" &
  beat=$!
  measured "$log" "$@" || status=FAILED
  kill "$beat" && wait "$beat" 2>/dev/null || true
  if [ "$status" = ok ]; then
    printf '%-34sok      %4d s, of processors %4d s  (%d s in all)\n' "$name" $((SECONDS - start)) "$processor" "$SECONDS"
    return
  fi
  printf '%-34sFAILED  %4d s\n\n' "$name" $((SECONDS - start))
  show_failure "$name" "$log"
  failed_steps=1
  finish
  exit 1
}
