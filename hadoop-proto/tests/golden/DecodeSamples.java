import java.io.ByteArrayOutputStream;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.thirdparty.protobuf.ByteString;
import org.apache.hadoop.thirdparty.protobuf.CodedOutputStream;
import org.apache.hadoop.thirdparty.protobuf.Descriptors.Descriptor;
import org.apache.hadoop.thirdparty.protobuf.Descriptors.EnumValueDescriptor;
import org.apache.hadoop.thirdparty.protobuf.Descriptors.FieldDescriptor;
import org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException;
import org.apache.hadoop.thirdparty.protobuf.Message;

/** Random encoded messages, some odd, and what Hadoop's parsers say: class message name, hex, verdict. */
public class DecodeSamples {
  static final String[] OUTER = {
    "org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos",
    "org.apache.hadoop.hdfs.protocol.proto.DatanodeProtocolProtos",
    "org.apache.hadoop.hdfs.protocol.proto.NamenodeProtocolProtos",
    "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocolProtos",
    "org.apache.hadoop.ipc.protobuf.RpcHeaderProtos",
    "org.apache.hadoop.ipc.protobuf.IpcConnectionContextProtos",
    "org.apache.hadoop.ipc.protobuf.ProtobufRpcEngine2Protos",
    "org.apache.hadoop.hdfs.server.namenode.FsImageProto",
  };
  static final Random random = new Random(35);

  static byte[] encode(Descriptor type, int depth, double omit) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    CodedOutputStream out = CodedOutputStream.newInstance(bytes);
    for (FieldDescriptor field : type.getFields()) {
      boolean absent = field.isRequired() ? random.nextDouble() < omit : random.nextInt(5) > 0;
      int count = absent ? 0 : field.isRepeated() ? 1 + random.nextInt(2) : random.nextInt(25) == 0 ? 2 : 1;
      for (int i = 0; i < count; i++) write(out, field, depth, omit);
    }
    if (random.nextInt(9) == 0) out.writeString(4000, "unknown field");
    out.flush();
    return bytes.toByteArray();
  }

  static void write(CodedOutputStream out, FieldDescriptor field, int depth, double omit) throws Exception {
    int number = field.getNumber();
    if (random.nextInt(80) == 0) {
      if (random.nextBoolean()) out.writeUInt64(number, random.nextInt(300));
      else out.writeFixed32(number, random.nextInt());
      return;
    }
    switch (field.getJavaType()) {
      case MESSAGE:
        out.writeByteArray(number, depth > 6 ? new byte[0] : encode(field.getMessageType(), depth + 1, omit));
        break;
      case STRING:
      case BYTE_STRING:
        byte[] text = new byte[random.nextInt(5)];
        for (int i = 0; i < text.length; i++) text[i] = (byte) (random.nextInt(12) == 0 ? random.nextInt() : 'a' + random.nextInt(26));
        out.writeByteArray(number, text);
        break;
      case ENUM:
        List<EnumValueDescriptor> values = field.getEnumType().getValues();
        out.writeInt32(number, random.nextInt(40) == 0 ? 99 : values.get(random.nextInt(values.size())).getNumber());
        break;
      case DOUBLE:
        out.writeDouble(number, random.nextInt(100));
        break;
      default:
        if (field.getType() == FieldDescriptor.Type.SFIXED32) out.writeFixed32(number, 7);
        else if (field.getType() == FieldDescriptor.Type.SFIXED64) out.writeFixed64(number, 7);
        else out.writeUInt64(number, random.nextLong() >>> random.nextInt(64));
    }
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte b : bytes) text.append(String.format("%02x", b));
    return text.toString();
  }

  static void sample(Message type, byte[] bytes) {
    String verdict;
    try {
      type.getParserForType().parseFrom(bytes);
      verdict = "ok";
    } catch (InvalidProtocolBufferException e) {
      int at = e.getMessage().indexOf("required fields: ");
      verdict = at < 0 ? "malformed" : "missing\t" + e.getMessage().substring(at + 17);
    }
    System.out.println(type.getDescriptorForType().getFullName() + "\t" + hex(bytes) + "\t" + verdict);
  }

  public static void main(String[] args) throws Exception {
    List<Message> types = new ArrayList<>();
    for (String outer : OUTER) {
      for (Class<?> inner : Class.forName(outer).getDeclaredClasses()) {
        if (!Message.class.isAssignableFrom(inner) || !Modifier.isFinal(inner.getModifiers())) continue;
        Message type = (Message) inner.getMethod("getDefaultInstance").invoke(null);
        if (!type.getDescriptorForType().getFields().isEmpty()) types.add(type);
      }
    }
    types.sort((a, b) -> a.getDescriptorForType().getFullName().compareTo(b.getDescriptorForType().getFullName()));
    for (Message type : types) {
      sample(type, encode(type.getDescriptorForType(), 0, 0.0));
      for (int i = 0; i < 3; i++) {
        byte[] bytes = encode(type.getDescriptorForType(), 0, 0.08);
        if (bytes.length > 400) continue;
        if (bytes.length > 0 && random.nextInt(6) == 0) bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
        sample(type, bytes);
      }
    }
  }
}
