# Kafka, OpenSearch and Elasticsearch 7.10 as the jars that Maven has, each started by a class path.

KAFKA_VERSION=4.4.0 OPENSEARCH_VERSION=2.19.6
JAVA_FLAGS=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1) # quick to start and small, which is what tests want

java_tools() { need mvn=maven javac=default-jdk-headless curl=curl; }
maven() { mvn -q -B -ntp -Dstyle.color=never "$@"; }

jars() { # DIR G:A:V...: DIR/lib has them and what they need at run time
  java_tools
  local d=$1 a g i v; shift
  { echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>test</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
    for a in "$@"; do
      IFS=: read -r g i v <<<"$a"
      echo "<dependency><groupId>$g</groupId><artifactId>$i</artifactId><version>$v</version></dependency>"
    done
    echo '</dependencies></project>'; } >"$d/pom.xml"
  maven -f "$d/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$d/lib"
}

# ---- OpenSearch, Elasticsearch 7.10 ----------------------------------------------------------------
search_name() { if [ "$1" = opensearch ]; then echo "opensearch-$OPENSEARCH_VERSION"; else echo elasticsearch-7.10.2; fi; }

search_fetch() { # NAME DIR FINALDIR. One launcher serves both: the packages' names differ, the classes don't.
  local d=$2 v=$OPENSEARCH_VERSION to=opensearch
  if [ "$1" = opensearch ]; then
    jars "$d" org.opensearch:opensearch:$v org.opensearch.plugin:{transport-netty4-client,analysis-common,lang-painless,reindex-client}:$v \
      org.apache.logging.log4j:log4j-core:2.25.4
  else
    to=elasticsearch
    jars "$d" org.codelibs:elasticsearch-cluster-runner:7.10.2.0 org.codelibs.elasticsearch.module:reindex:7.10.2
  fi
  sed "s/org\.opensearch/org.$to/g" "$HERE/lib/SearchNode.java" >"$d/SearchNode.java"
  javac -cp "$d/lib/*" -d "$d/classes" "$d/SearchNode.java"
}
search_start() { # NAME PORT
  local i d=$RUN/$1
  i=$INST/$(search_name "$1")
  spawn "$1" java -Xms128m -Xmx512m "${JAVA_FLAGS[@]}" "-Djava.io.tmpdir=$d" -cp "$i/classes:$i/lib/*" \
    SearchNode "$d/home" "http.port=$2" "transport.port=$(free_port $(($2 + 100)))"
}

# ---- Kafka -----------------------------------------------------------------------------------------
kafka_fetch() { jars "$1" "org.apache.kafka:kafka_2.13:$KAFKA_VERSION" org.slf4j:slf4j-simple:1.7.36; }
kafka_start() { # PORT
  local d=$RUN/kafka c
  if [ ! -e "$d/server.properties" ]; then kafka_properties "$1" "$(free_port $(($1 + 1)))" >"$d/server.properties"; fi
  c=(java -Xms64m -Xmx256m "${JAVA_FLAGS[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$INST/kafka-$KAFKA_VERSION/lib/*")
  if [ ! -e "$d/data/meta.properties" ]; then
    (cd "$d"; as_server "${c[@]}" kafka.tools.StorageTool format -t 4L6g3nShT-eMCtK--X86sw -c server.properties) >>"$RUN/kafka.log" 2>&1 ||
      { tail "$RUN/kafka.log" >&2; die "format of kafka: see above"; }
  fi
  spawn kafka "${c[@]}" kafka.Kafka "$d/server.properties"
}
kafka_properties() { # PORT CONTROLLERPORT. The short session lets a killed broker come back in 5 s, not 12.
  cat <<E
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$2
listeners=PLAINTEXT://127.0.0.1:$1,CONTROLLER://127.0.0.1:$2
advertised.listeners=PLAINTEXT://127.0.0.1:$1
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$RUN/kafka/data
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=1
num.io.threads=2
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
E
}
