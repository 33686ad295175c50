# PostgreSQL 13 to 18: the server programs (initdb, pg_ctl, postgres) as a Maven artefact.

pg_version() {
  case $1 in
  pg13) echo 13.23.0 ;; pg14) echo 14.23.0 ;; pg15) echo 15.18.0 ;;
  pg16) echo 16.14.0 ;; pg17) echo 17.10.0 ;; pg18) echo 18.4.0 ;;
  esac
}
pg_bin() { echo "$INST/$1-$(pg_version "$1")/pg/bin"; }
pg_url() { echo "postgres://postgres@127.0.0.1:$(port_of "$1")/postgres?sslmode=disable"; }

pg_install() { # NAME
  install certs certs_fetch
  install "$1-$(pg_version "$1")" pg_fetch "$(pg_version "$1")"
}

pg_fetch() { # VERSION DIR FINALDIR
  local arch=amd64
  if [ "$(uname -m)" = aarch64 ]; then arch=arm64v8; fi
  java_tools; need unzip=unzip xz=xz-utils
  maven dependency:copy -Dartifact="io.zonky.test.postgres:embedded-postgres-binaries-linux-$arch:$1" -DoutputDirectory="$2/jar"
  mkdir "$2/pg"
  unzip -p "$2"/jar/*.jar 'postgres-linux-*.txz' | tar -xJf - -C "$2/pg"
  rm -r "$2/jar"
}

certs_fetch() { # DIR: a CA and a server certificate for 127.0.0.1 and localhost, for tests only
  need openssl=openssl
  cd "$1"; exec 2>openssl.log
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=tailwater-test-ca -keyout ca.key -out ca.pem
  openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 -out server.crt \
    -extfile <(echo 'subjectAltName=DNS:localhost,IP:127.0.0.1')
  chmod 644 server.key # the servers' user copies it
}

# fsync is off: a test server outlives a kill, not a power cut.
pg_start() { # NAME PORT
  local b d=$RUN/$1
  b=$(pg_bin "$1")
  rm -f "$d/data/postmaster.pid" # left by a crash: it could name a pid that is another's now
  if [ ! -e "$d/data/PG_VERSION" ]; then
    (cd "$d"; HOME=$d LC_ALL=C.UTF-8 as_server "$b/initdb" -D "$d/data" -U postgres -A trust -E UTF8 --locale=C -N) >>"$RUN/$1.log" 2>&1 ||
      { tail "$RUN/$1.log" >&2; die "initdb of $1: see above"; }
    as_server cp "$INST/certs/server.crt" "$INST/certs/server.key" "$d/"
    as_server chmod 600 "$d/server.key"
  fi
  spawn "$1" "$b/postgres" -D "$d/data" -p "$2" -k "$d" -c listen_addresses=127.0.0.1 -c wal_level=logical \
    -c max_replication_slots=100 -c max_wal_senders=100 -c max_connections=300 -c max_prepared_transactions=20 \
    -c shared_buffers=64MB -c fsync=off -c log_min_messages=warning \
    -c ssl=on -c "ssl_cert_file=$d/server.crt" -c "ssl_key_file=$d/server.key"
}
