import org.apache.hadoop.thirdparty.protobuf.*;
import java.nio.file.*;
/** Byte strings that are mostly not UTF-8, and the UTF-16 text Java makes of each. */
public class Texts { public static void main(String[] a) throws Exception {
  int[] bs={0x41,0x80,0x8f,0x90,0x9f,0xa0,0xbf,0xc0,0xc1,0xc2,0xdf,0xe0,0xe1,0xec,0xed,0xee,0xef,0xf0,0xf1,0xf3,0xf4,0xf5,0xf8,0xff};
  StringBuilder o=new StringBuilder(); int n=bs.length;
  for(int len=1;len<=5;len++){ long tot=(long)Math.pow(n,len); java.util.Random r=new java.util.Random(1);
   for(long k=0;k<tot;k++){ if(len==4&&r.nextInt(8)!=0||len==5&&r.nextInt(200)!=0) continue; byte[] b=new byte[len]; long x=k; for(int i=0;i<len;i++){b[i]=(byte)bs[(int)(x%n)];x/=n;}
    String s=ByteString.copyFrom(b).toStringUtf8(); for(byte c:b)o.append(String.format("%02x",c&255)); o.append('\t'); for(char c:s.toCharArray())o.append(String.format("%04x",(int)c)); o.append('\n'); } }
  Files.writeString(Path.of("texts.tsv"),o);
}}
