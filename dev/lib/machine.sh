# The machine: who we are, and the programs that have to be on it. Sourced by dev/services and dev/test.

log() { printf 'services: %s\n' "$*" >&2; }
die() { log "$*"; exit 1; }
ms() { echo $(($(date +%s%N) / 1000000)); }
is_root() { [ "$(id -u)" = 0 ]; }

# as_server runs a command as the user that servers run as: nobody when we are root (PostgreSQL
# refuses root and the others don't need it), else ourselves.
as_server() {
  if is_root; then setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"; else "$@"; fi
}

as_root() {
  if is_root; then "$@"
  elif command -v sudo >/dev/null; then sudo -E "$@"
  else die "'$*' needs root, and there is no sudo: run it as root once"; fi
}

# need PROGRAM=PACKAGES... installs by apt the packages of programs that are missing.
need() {
  local p missing=()
  # shellcheck disable=SC2206
  for p in "$@"; do command -v "${p%%=*}" >/dev/null || missing+=(${p#*=}); done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "needed and missing: ${missing[*]}"
  log "apt-get install ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 ||
    die "apt-get install ${missing[*]}: see above"
}

# package_index makes sure that apt-cache knows the packages, which the Debian example reads.
package_index() {
  [ "$(apt-cache dumpavail 2>/dev/null | grep -c '^Package:')" -lt 1000 ] || return 0
  log "apt-get update"
  as_root apt-get update -qq >&2
}
