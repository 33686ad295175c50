# Redis, MySQL and MariaDB from Debian or Ubuntu packages that are unpacked, not installed: no root,
# no service that starts by itself, and a server of another suite runs with that suite's own libc.

# debs SUITE DIR PKG... downloads packages with all they depend on, by an apt of our own that thinks
# nothing is installed, and unpacks them under DIR/root. SUITE 'own' is what the machine's sources name.
debs() {
  local suite=$1 d=$2 f; shift 2
  local s=$DIR/apt-$suite c=$d/apt o
  mkdir -p "$s/lists/partial" "$c/archives/partial"; : >"$s/status"
  o=(-o Dir::State="$s" -o Dir::State::lists="$s/lists" -o Dir::State::status="$s/status" -o Dir::Cache="$c"
    -o APT::Install-Recommends=false -o Acquire::Languages=none -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  if [ "$suite" != own ]; then
    debian_source "$suite" >"$s/sources.list"
    o+=(-o Dir::Etc::sourcelist="$s/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null)
  fi
  apt-get "${o[@]}" update -qq
  apt-get "${o[@]}" install -y -qq --download-only "$@" >/dev/null
  mkdir -p "$d/root"
  for f in "$c"/archives/*.deb; do
    case ${f##*/} in perl* | libperl* | libc-gconv* | libgdbm* | libdb5* | debconf* | adduser* | passwd* | systemd* | \
      dash* | bash* | coreutils* | util-linux* | ucf* | init-system* | openssl-provider* | galera*) continue ;; esac
    dpkg-deb -x "$f" "$d/root"
  done
  rm -rf "$c" "$d"/root/usr/share/{doc,man,locale,bug,lintian} "$d/root/usr/lib/$(multiarch)/gconv"
}

debian_source() { # SUITE: a sources line. The mirror is the machine's own; it is written down nowhere.
  local m key=/usr/share/keyrings/debian-archive-keyring.gpg
  m=${TAILWATER_DEBIAN_MIRROR:-$(apt-get --print-uris update 2>/dev/null | sed -n "s#^'\\([^']*/debian\\)/dists/.*#\\1#p" | sort -u | head -n 1)}
  [ -n "$m" ] || die "apt's sources name no Debian mirror: set TAILWATER_DEBIAN_MIRROR"
  if [ ! -e $key ]; then need no-such-program=debian-archive-keyring; fi
  echo "deb [signed-by=$key] $m $1 main"
}

multiarch() { echo "$(uname -m)-linux-gnu"; }
loader() { # ROOT: the command that runs a program of an unpacked suite with its own libc
  local r=$1 l a
  a=$(multiarch)
  for l in "$r"/usr/lib64/ld-linux-*.so.* "$r"/lib64/ld-linux-*.so.* "$r"/usr/lib/ld-linux-*.so.* "$r"/lib/ld-linux-*.so.*; do if [ -e "$l" ]; then break; fi; done
  echo "$l --library-path $r/usr/lib/$a:$r/lib/$a"
}

# ---- Redis ---------------------------------------------------------------------------------------
redis_fetch() { debs own "$1" redis-server; }
redis_start() { # PORT
  local r=$INST/redis/root
  # shellcheck disable=SC2046
  spawn redis $(loader "$r") "$r/usr/bin/redis-server" --port "$1" --bind 127.0.0.1 --dir "$RUN/redis" --save '' --appendonly no --databases 512
}

# ---- MySQL ---------------------------------------------------------------------------------------
# Ubuntu has a server of its own; Debian has one in its unstable suite only.
mysql_fetch() { # DIR FINALDIR
  if grep -q '^ID=ubuntu' /etc/os-release; then debs own "$1" default-mysql-server-core
  else debs sid "$1" mysql-server-core; fi
  local t
  rm -rf "$DIR"/my.*
  t=$(mktemp -d "$DIR/my.XXXXXX")
  if is_root; then chown nobody:nogroup "$t"; fi
  # An initialised data directory is kept, since making one takes 3 to 5 seconds.
  # shellcheck disable=SC2046
  as_server $(mysqld_cmd "$1/root" "$t/data") --initialize-insecure --skip-log-bin >"$1/init.log" 2>&1 || { tail "$1/init.log"; return 1; }
  rm -f "$t/data/auto.cnf"
  mv "$t/data" "$1/template"
  rm -rf "$t"
}
mysqld_cmd() { # ROOT DATADIR. The tmpdir is its own: a server that starts removes all '#sql*' in it.
  echo "$(loader "$1") $1/usr/sbin/mysqld --no-defaults --basedir=$1/usr --lc-messages-dir=$1/usr/share/mysql --character-sets-dir=$1/usr/share/mysql/charsets --plugin-dir=$1/usr/lib/mysql/plugin --datadir=$2 --tmpdir=${2%/*} --secure-file-priv=NULL"
}
mysql_start() { # PORT
  local d=$RUN/mysql
  if [ ! -d "$d/data" ]; then cp -a "$INST/mysql/template" "$d/data"; fi
  test_user >"$d/init.sql"
  # shellcheck disable=SC2046
  spawn mysql $(mysqld_cmd "$INST/mysql/root" "$d/data") --mysqlx=OFF --port="$1" --socket="$d/my.sock" --pid-file="$d/my.pid" \
    --bind-address=127.0.0.1 --init-file="$d/init.sql" --server-id=1 --log-bin=binlog --gtid-mode=ON --enforce-gtid-consistency=ON \
    --binlog-row-image=FULL --binlog-row-metadata=FULL --innodb-buffer-pool-size=64M --performance-schema=OFF \
    --innodb-flush-log-at-trx-commit=0 --sync-binlog=0
}
test_user() {
  cat <<'E'
CREATE USER IF NOT EXISTS 'test'@'%' IDENTIFIED BY 'test';
GRANT ALL ON *.* TO 'test'@'%' WITH GRANT OPTION;
CREATE DATABASE IF NOT EXISTS test;
E
}

# ---- MariaDB -------------------------------------------------------------------------------------
mariadb_fetch() { debs own "$1" mariadb-server-core; }
mariadb_share() { # ROOT: where its system tables' scripts and messages are; it moved between releases
  if [ -d "$1/usr/share/mariadb/english" ]; then echo "$1/usr/share/mariadb"; else echo "$1/usr/share/mysql"; fi
}
mariadb_cmd() { # ROOT DATADIR
  local sh cs
  sh=$(mariadb_share "$1"); cs=$sh/charsets
  if [ ! -d "$cs" ]; then cs=$1/usr/share/mysql/charsets; fi
  echo "$(loader "$1") $1/usr/sbin/mariadbd --no-defaults --basedir=$1/usr --lc-messages-dir=$sh --character-sets-dir=$cs --plugin-dir=$1/usr/lib/mysql/plugin --datadir=$2 --tmpdir=${2%/*} --innodb-buffer-pool-size=64M --innodb-log-file-size=8M"
}
mariadb_start() { # PORT
  local d=$RUN/mariadb r=$INST/mariadb/root sh p=mariadb
  sh=$(mariadb_share "$r")
  if [ ! -e "$sh/mariadb_system_tables.sql" ]; then p=mysql; fi
  if [ ! -d "$d/data" ]; then
    as_server mkdir "$d/data"
    # shellcheck disable=SC2046
    { printf 'create database if not exists mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n'
      cat "$sh/${p}_system_tables.sql" "$sh/${p}_performance_tables.sql" "$sh/${p}_system_tables_data.sql"; } |
      as_server $(mariadb_cmd "$r" "$d/data") --bootstrap >>"$RUN/mariadb.log" 2>&1 || { tail "$RUN/mariadb.log" >&2; die "bootstrap of mariadb: see above"; }
  fi
  test_user >"$d/init.sql"
  # shellcheck disable=SC2046
  spawn mariadb $(mariadb_cmd "$r" "$d/data") --port="$1" --socket="$d/my.sock" --pid-file="$d/my.pid" --bind-address=127.0.0.1 \
    --init-file="$d/init.sql" --server-id=1 --log-bin=binlog --binlog-format=ROW --binlog-row-image=FULL --binlog-row-metadata=FULL \
    --gtid-strict-mode=ON --innodb-flush-log-at-trx-commit=0
}
