#!/bin/bash
# Hadoop's NNThroughputBenchmark over RPC against Ironroot and the Java NameNode, side by side in the same run.
#
#   bench/nnthroughput.sh            needs target/release/ironroot, Java and Maven
#   OPS=20000 THREADS=8 ROUNDS=3     operations of each kind a round, client threads, measured rounds (one more goes first, to warm up)
#   IRONROOT=path                    the binary; IRONROOT=java compares Java with itself (how far apart equal things are)
#   OUT=folder                       keeps the table and every client's output there
#
# Both NameNodes run all the time as processes of their own; each round runs every operation on one, then on the other,
# in turn first. Server CPU is user + system time of the NameNode's process while the operations run. The rows are medians
# over the rounds. create also closes the file (two calls an operation).
set -eu
ROOT=$(dirname "$(dirname "$(readlink -f "$0")")")
OPS=${OPS:-20000} THREADS=${THREADS:-8} ROUNDS=${ROUNDS:-3}
IRONROOT=${IRONROOT:-$ROOT/target/release/ironroot}
HADOOP=${IRONROOT_HADOOP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ironroot/hadoop-3.5.0}
KINDS="create open fileStatus rename delete mkdirs"

[ "$IRONROOT" = java ] || [ -x "$IRONROOT" ] || { echo "$IRONROOT is not there: cargo build --release" >&2; exit 2; }
if [ ! -d "$HADOOP/jars" ]; then
  mkdir -p "$HADOOP"
  mvn -q -B -f "$ROOT/src/cli/hadoop-pom.xml" dependency:copy-dependencies -DoutputDirectory="$HADOOP/jars.partial"
  mv "$HADOOP/jars.partial" "$HADOOP/jars"
fi

WORK=$(mktemp -d); OUT=${OUT:-$WORK/out}; mkdir -p "$OUT"
declare -A PID PORT
trap 'for p in "${PID[@]}"; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$WORK"' EXIT

# as Hadoop's own configuration has it: audit lines are formatted and go nowhere
cat "$ROOT/tests/support/log4j.properties" - > "$WORK/log4j.properties" <<X
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=INFO,nowhere
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.appender.nowhere=org.apache.log4j.varia.NullAppender
X

OPENS=()
for package in java.lang java.util java.util.concurrent java.net java.nio java.io sun.nio.ch; do OPENS+=("--add-opens=java.base/$package=ALL-UNNAMED"); done
java_with() { # log level, configuration folder, words
  local level=$1 conf=$2; shift 2
  exec java "${OPENS[@]}" -Xmx2g -Duser.timezone=UTC -Djava.net.preferIPv4Stack=true -Djava.io.tmpdir="$WORK" \
    -Dlog4j.configuration="file:$WORK/log4j.properties" -Dironroot.log.level="$level" -cp "$HADOOP/jars/*:$conf" "$@"
}
free_port() { # below the ports of outgoing connections
  local port
  while port=$((12000 + RANDOM % 20000)); (exec 3<> "/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  echo $port
}
configure() { # side
  local conf=$WORK/$1/conf; mkdir -p "$conf"; PORT[$1]=$(free_port)
  cat > "$conf/core-site.xml" <<X
<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:${PORT[$1]}</value></property></configuration>
X
  cat > "$conf/hdfs-site.xml" <<X
<configuration>
<property><name>dfs.namenode.name.dir</name><value>file://$WORK/$1/name</value></property>
<property><name>dfs.namenode.http-address</name><value>127.0.0.1:$(free_port)</value></property>
<property><name>dfs.namenode.fs-limits.min-block-size</name><value>16</value></property>
</configuration>
X
}
namenode() { # side, words; both log what they log by default
  local side=$1; shift
  if [ "$side" = java ] || [ "$IRONROOT" = java ]; then
    java_with INFO "$WORK/$side/conf" org.apache.hadoop.hdfs.server.namenode.NameNode "$@"
  else
    HADOOP_CONF_DIR=$WORK/$side/conf exec "$IRONROOT" namenode "$@"
  fi
}
start() { # side
  configure "$1"
  (namenode "$1" -format -nonInteractive) > "$OUT/$1-format.log" 2>&1 || { tail "$OUT/$1-format.log" >&2; exit 1; }
  (namenode "$1") > "$OUT/$1-namenode.log" 2>&1 & PID[$1]=$!
  for _ in $(seq 150); do (exec 3<> "/dev/tcp/127.0.0.1/${PORT[$1]}") 2>/dev/null && return; sleep 0.2; done
  tail "$OUT/$1-namenode.log" >&2; exit 1
}
sample() { # process: "microseconds of the clock, ticks of user + system time", every 10 ms, without starting anything
  local line fields pipe=$WORK/never
  [ -p "$pipe" ] || mkfifo "$pipe"
  exec 9<> "$pipe"
  while read -r line < "/proc/$1/stat"; do
    read -ra fields <<< "${line##*) }"
    echo "${EPOCHREALTIME/[.,]/} $((fields[11] + fields[12]))"
    read -rt 0.01 -u 9 || true
  done
}
measure() { # side, round, operation
  local side=$1 round=$2 op=$3 words=(-op "$3" -threads "$THREADS") log=$OUT/$1-$2-$3.log sampler begin
  case $op in
    mkdirs) words+=(-dirs "$OPS");;
    create) words+=(-files "$OPS" -close);;
    *) words+=(-files "$OPS");;
  esac
  sample "${PID[$side]}" > "$WORK/samples" & sampler=$!
  (java_with INFO "$WORK/$side/conf" org.apache.hadoop.hdfs.server.namenode.NNThroughputBenchmark -fs "hdfs://127.0.0.1:${PORT[$side]}" "${words[@]}") > "$log" 2>&1 ||
    { kill $sampler; tail -20 "$log" >&2; exit 1; }
  kill $sampler; wait $sampler 2> /dev/null || true
  # the operations run from this line on, for the elapsed time; what comes before and after is preparation and tidying
  begin=$(sed -n "s/^\(.*\),\(...\) INFO .*: Starting $OPS .*(s)\.\$/\1.\2 UTC/p" "$log" | tail -1)
  [ -n "$begin" ] || { echo "$log: no start" >&2; exit 1; }
  awk -v side="$side" -v round="$round" -v op="$op" -v begin="$(date -d "$begin" +%s%6N)" -v hz="$(getconf CLK_TCK)" '
    FNR == NR {if (/# operations: /) n = $NF; if (/Elapsed Time: /) end = begin + 1000 * $NF; if (/Ops per sec: /) rate = $NF; next}
    from == "" && $1 >= begin {from = $2} to == "" && $1 >= end {to = $2}
    END {if (n == 0 || rate == "" || to == "") exit 1; printf "%s\t%s\t%s\t%s\t%.1f\t%.4f\n", side, round, op, n, rate, 1000 * (to - from) / hz / n}' \
    "$log" "$WORK/samples" >> "$OUT/measured.tsv" || { echo "$log: no result" >&2; tail -20 "$log" >&2; exit 1; }
}

: > "$OUT/measured.tsv"
start ironroot; start java
for round in $(seq 0 "$ROUNDS"); do
  order="ironroot java"; [ $((round % 2)) = 0 ] || order="java ironroot"
  for side in $order; do
    for op in $KINDS; do measure "$side" "$round" "$op"; done
  done
done

awk -F'\t' -v kinds="$KINDS" -v ops="$OPS" -v threads="$THREADS" -v rounds="$ROUNDS" '
  function median(key,   i, j, n, list, swap) {
    n = count[key]; for (i = 1; i <= n; i++) list[i] = value[key, i]
    for (i = 1; i < n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) {swap = list[i]; list[i] = list[j]; list[j] = swap}
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
  }
  function ratio(a, b) {return b > 0 ? sprintf("%.2f", a / b) : "-"}
  $2 > 0 {key = $3 " " $1 " rate"; value[key, ++count[key]] = $5; key = $3 " " $1 " cpu"; value[key, ++count[key]] = $6}
  END {
    printf "NNThroughputBenchmark, %d operations, %d client threads, median of %d rounds\n\n", ops, threads, rounds
    printf "%-12s %12s %12s %7s   %14s %14s %7s\n", "", "ironroot", "java", "", "ironroot", "java", "java /"
    printf "%-12s %12s %12s %7s   %14s %14s %7s\n", "operation", "ops/s", "ops/s", "ratio", "CPU ms/op", "CPU ms/op", "ironroot"
    m = split(kinds, kind, " ")
    for (k = 1; k <= m; k++) {
      a = median(kind[k] " ironroot rate"); b = median(kind[k] " java rate"); c = median(kind[k] " ironroot cpu"); d = median(kind[k] " java cpu")
      printf "%-12s %12.0f %12.0f %7s   %14.4f %14.4f %7s\n", kind[k], a, b, ratio(a, b), c, d, ratio(d, c)
    }
  }' "$OUT/measured.tsv" | tee "$OUT/table.txt"
