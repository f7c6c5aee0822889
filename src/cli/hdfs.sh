#!/bin/sh
# Hadoop's own programs against the NameNode of this folder: hdfs dfs, hdfs dfsadmin, hdfs datanode.
conf='@CONF@'
jars='@JARS@'
if [ "$1" = --config ]; then
  conf=$2
  shift 2
fi
program=$1
[ $# -gt 0 ] && shift
case $program in
  dfs) class=org.apache.hadoop.fs.FsShell ;;
  dfsadmin) class=org.apache.hadoop.hdfs.tools.DFSAdmin ;;
  datanode) class=org.apache.hadoop.hdfs.server.datanode.DataNode ;;
  *) echo "Usage: $0 dfs|dfsadmin|datanode ..." >&2; exit 1 ;;
esac
open=
for package in java.lang java.util java.util.concurrent java.net java.nio java.io sun.nio.ch; do
  open="$open --add-opens=java.base/$package=ALL-UNNAMED"
done
exec java $open "-Dhadoop.root.logger=${HADOOP_ROOT_LOGGER:-WARN,console}" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx512m -cp "$conf:$jars/*" "$class" "$@"
