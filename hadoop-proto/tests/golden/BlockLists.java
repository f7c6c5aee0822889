import org.apache.hadoop.hdfs.protocol.*;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.ReplicaState;
import org.apache.hadoop.thirdparty.protobuf.ByteString;
import java.util.*;
/** Block lists in both forms, and what Hadoop reads from good and bad ones. */
public class BlockLists {
  static String hex(ByteString b){ StringBuilder s=new StringBuilder(); for(byte x:b.toByteArray()) s.append(String.format("%02x",x)); return s.toString(); }
  static void one(String name, long[][] rs) throws Exception {
    BlockListAsLongs.Builder b=BlockListAsLongs.builder(); StringBuilder j=new StringBuilder();
    for(long[] r:rs){ BlockListAsLongs.BlockReportReplica p=new BlockListAsLongs.BlockReportReplica(new Block(r[0],r[1],r[2])); p.setState(ReplicaState.getState((int)r[3])); b.add(p); }
    BlockListAsLongs l=b.build();
    StringBuilder o=new StringBuilder("case\t"+name+"\n"); for(long[] r:rs){ o.append("replica\t"+r[0]+"\t"+r[1]+"\t"+r[2]+"\t"+ReplicaState.getState((int)r[3])+"\n"); }
    o.append("count\t"+l.getNumberOfBlocks()+"\nbuffer\t"+hex(l.getBlocksBuffer())+"\nlongs");
    for(long v:l.getBlockListAsLongs()) o.append("\t"+v); o.append("\n"); System.out.print(o);
  }
  static void decode(String what, java.util.function.Supplier<BlockListAsLongs> s){
    StringBuilder o=new StringBuilder(); String end="end";
    try { for(BlockListAsLongs.BlockReportReplica r: s.get()) o.append("\t"+r.getBlockId()+","+r.getNumBytes()+","+r.getGenerationStamp()+","+r.getState()); } catch(Throwable t){ end="error"; }
    System.out.println("decode\t"+what+"\t"+end+o);
  }
  static ByteString bs(String h){ byte[] b=new byte[h.length()/2]; for(int i=0;i<b.length;i++) b[i]=(byte)Integer.parseInt(h.substring(2*i,2*i+2),16); return ByteString.copyFrom(b); }
  static void buf(int n,String... h){ List<ByteString> l=new ArrayList<>(); for(String x:h) l.add(bs(x)); decode("buffers\t"+n+"\t"+String.join(",",h), ()->BlockListAsLongs.decodeBuffers(n,l)); }
  static void lng(Long... v){ StringBuilder s=new StringBuilder(); for(Long x:v){ if(s.length()>0)s.append(','); s.append(x);} decode("longs\t"+v.length+"\t"+s, ()->BlockListAsLongs.decodeLongs(Arrays.asList(v))); }
  public static void main(String[] a) throws Exception {
    one("empty", new long[][]{});
    one("one finalized", new long[][]{{1073741825L,134217728L,1001L,0}});
    one("all states", new long[][]{{1073741826L,0,1002,1},{1073741827L,5,1003,0},{-9223372036854775792L,1048576,1004,2},{1073741828L,7,1005,3},{1073741829L,8,1006,4},{-5L,9,1007,0}});
    one("only under construction", new long[][]{{1,2,3,1},{4,5,6,2}});
    one("extremes", new long[][]{{Long.MAX_VALUE,(1L<<48)-1,Long.MAX_VALUE,0},{Long.MIN_VALUE,1L<<48,-1,0},{0,0,0,0},{-1,(1L<<50)+3,Long.MIN_VALUE,1}});
    Random r=new Random(7); long[][] m=new long[60][]; for(int i=0;i<60;i++) m[i]=new long[]{r.nextInt(3)==0?r.nextLong():1073741825L+r.nextInt(1000000),r.nextInt(1<<28),1000+r.nextInt(100000),r.nextInt(3)==0?r.nextInt(5):0}; one("mixed", m);
    buf(0,"00"); buf(1,"0201e80700","ff"); buf(2,"0201e80700"); buf(1,"0201e8","0700"); buf(1,"02","","01e8","0700"); buf(1,"0201e80705"); buf(1,"0201e80704"); buf(1,"0201e80714"); buf(-1,"02"); buf(1); buf(2,"0201e807000401","e90700");
    buf(1,"ffffffffffffffffffff01","01e80700"); buf(1,"ffffffffffffffffff7f","01e80700");
    buf(1,"0280808080808080808001e80700"); buf(1,"0201e807ff7f");
    lng(); lng(1L); lng(0L,0L); lng(0L,0L,-1L,-1L,-1L); lng(1L,0L,5L,6L,7L); lng(1L,0L,5L,6L); lng(0L,1L,-1L,-1L,-1L,5L,6L,7L,1L); lng(0L,1L,5L,6L,7L,1L); lng(0L,1L,-1L,-1L,-1L,5L,6L,7L,5L); lng(1L,1L,5L,6L,7L,-1L,-1L,-1L,8L,9L,10L,4294967298L);
    lng(-1L,2L,-1L,-1L,-1L,5L,6L,7L,1L); lng(1L,-1L,5L,6L,7L); lng(4294967297L,0L,5L,6L,7L); lng(2L,0L,5L,6L,7L,8L,9L,10L,-1L,-1L,-1L,11L); lng(1L,0L,-1L,-1L,-1L);lng(0L,1L,-1L,-1L,-1L,5L,6L,7L,-1L); lng(-1L,3L,5L,6L,7L,1L,8L,9L,10L,2L);
  }}
