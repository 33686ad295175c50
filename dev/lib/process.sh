# Installs that are whole or absent, and servers as processes that are known by pid and start time.

# install NAME FUNCTION ARGS...: FUNCTION ARGS... NEWDIR FINALDIR fills a new directory, which is
# moved into place when it is whole. It runs in the background and is waited for since bash ignores
# 'set -e' inside whatever stands before a '||'; for the same reason callers use 'if', not '||'.
install() {
  local d=$INST/$1 t0; shift
  if [ -e "$d/.ok" ]; then return; fi
  t0=$(ms); rm -rf "$d" "$d.new"; mkdir -p "$d.new"
  ("$@" "$d.new" "$d") >&2 &
  wait $! || die "install of ${d##*/}: see above"
  : >"$d.new/.ok"; mv "$d.new" "$d"
  log "installed ${d##*/} in $(($(ms) - t0)) ms, $(du -sh "$d" | cut -f1)"
}

fresh_rundir() { # NAME: an empty directory that the server's user owns
  rm -rf "${RUN:?}/$1"; mkdir -p "$RUN/$1"
  if is_root; then chown nobody:nogroup "$RUN/$1"; fi
}

port_of() { cat "$RUN/$1/port"; }
port_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() { local p=$1; while port_open "$p"; do p=$((p + 20)); done; echo "$p"; }

born() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; } # start time in clock ticks after boot
alive() { # NAME
  [ -s "$RUN/$1/pid" ] || return 1
  local pid start
  read -r pid start <"$RUN/$1/pid"
  [ -n "$start" ] && [ "$(born "$pid")" = "$start" ]
}

spawn() { # NAME CMD...: in the background, in a session of its own, output to RUN/NAME.log
  local n=$1 pid; shift
  (cd "$RUN/$n"; export HOME=$RUN/$n TMPDIR=$RUN/$n LC_ALL=C.UTF-8
   exec 9>&- </dev/null >>"$RUN/$n.log" 2>&1
   if is_root; then exec setsid setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; else exec setsid "$@"; fi) &
  pid=$!
  echo "$pid $(born "$pid")" >"$RUN/$n/pid"
}

await() { # NAME SECONDS
  local n=$1 until=$((SECONDS + $2))
  until is_ready "$n" >/dev/null 2>&1; do
    alive "$n" || { tail -n 20 "$RUN/$n.log" >&2; die "$n ended while it started: its log is above"; }
    [ $SECONDS -lt $until ] || { tail -n 20 "$RUN/$n.log" >&2; die "$n isn't ready after $2 s: its log is above"; }
    sleep 0.05
  done
}

signal() { # NAME HOW
  local pid kids sig=TERM
  read -r pid _ <"$RUN/$1/pid"
  case $1 in pg*) sig=INT ;; esac # PostgreSQL: INT is the fast shutdown
  if [ "$2" = crash ]; then
    kids=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null || true)
    # shellcheck disable=SC2086
    kill -KILL "$pid" $kids 2>/dev/null || true
  else kill -$sig "$pid"; fi
}

await_end() { # NAME
  local pid i
  for i in $(seq 400); do alive "$1" || return 0; sleep 0.05; done
  read -r pid _ <"$RUN/$1/pid"
  log "$1 did not stop within 20 s: killed"
  kill -KILL "$pid"
}
