//! Copies a block from one DataNode to a pipeline of others, as a client of both (Hadoop's data transfer protocol, without encryption). The packets
//! go on as they come: their checksums are looked at by the DataNodes that receive them.

use bytes::{Buf, BufMut, BytesMut};
use hadoop_proto::Message;
use hadoop_proto::hdfs::op_write_block_proto::BlockConstructionStage;
use hadoop_proto::hdfs::{
    BaseHeaderProto, BlockOpResponseProto, ChecksumProto, ClientOperationHeaderProto, ClientReadStatusProto,
    DatanodeInfoProto, LocatedBlockProto, OpReadBlockProto, OpWriteBlockProto, PacketHeaderProto, PipelineAckProto,
    Status,
};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Version of the protocol that opens each operation.
const VERSION: u16 = 28;
/// Number of the operation that writes a block.
const WRITE: u8 = 80;
/// Number of the operation that reads a block.
const READ: u8 = 81;
/// Longest message of a DataNode that is taken, in bytes.
const MESSAGE_MAX: usize = 1 << 20;
/// Longest packet that is taken, in bytes.
const PACKET_MAX: usize = 16 << 20;
/// Longest wait for a DataNode.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sequence number of acknowledgements that are only signs of life.
const HEARTBEAT: i64 = -1;

type Stream = BufStream<TcpStream>;

fn broken(text: impl Into<String>) -> io::Error {
    io::Error::other(text.into())
}

async fn in_time<T>(what: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, what).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Copies a block; the number of its bytes.
///
/// # Errors
/// No DataNode that gives it, one of the pipeline that does not take it, checksums that do not fit, a DataNode that gives another length.
pub(super) async fn copy_block(from: &LocatedBlockProto, to: &LocatedBlockProto, client: &str) -> io::Result<u64> {
    let mut last = broken("no DataNode has it");
    for node in &from.locs {
        match open(from, node, client).await {
            Ok((source, checksum)) => return forward(source, checksum, from, to, client).await,
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn connect(node: &DatanodeInfoProto) -> io::Result<Stream> {
    let address = (node.id.ip_addr.as_str(), node.id.xfer_port as u16);
    Ok(BufStream::new(in_time(TcpStream::connect(address)).await?))
}

fn header(block: &LocatedBlockProto, client: &str) -> ClientOperationHeaderProto {
    ClientOperationHeaderProto {
        base_header: BaseHeaderProto {
            block: block.b.clone(),
            token: Some(block.block_token.clone()),
            trace_info: None,
        },
        client_name: client.to_owned(),
    }
}

async fn begin(stream: &mut Stream, operation: u8, asked: &impl Message) -> io::Result<BlockOpResponseProto> {
    let mut out = BytesMut::new();
    out.put_u16(VERSION);
    out.put_u8(operation);
    asked.encode_length_delimited(&mut out).map_err(io::Error::other)?;
    in_time(async {
        stream.write_all(&out).await?;
        stream.flush().await
    })
    .await?;
    let answer: BlockOpResponseProto = message(stream).await?;
    match answer.status() {
        Status::Success => Ok(answer),
        other => Err(broken(format!("{}: {}", other.as_str_name(), answer.message()))),
    }
}

/// A message behind its length.
async fn message<M: Message + Default>(stream: &mut Stream) -> io::Result<M> {
    in_time(async {
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            let byte = stream.read_u8().await?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 21 {
                return Err(broken("a message without end"));
            }
        }
        if length > MESSAGE_MAX {
            return Err(broken("a message without end"));
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        M::decode(&body[..]).map_err(io::Error::other)
    })
    .await
}

async fn open(
    block: &LocatedBlockProto,
    node: &DatanodeInfoProto,
    client: &str,
) -> io::Result<(Stream, ChecksumProto)> {
    let mut stream = connect(node).await?;
    let asked = OpReadBlockProto {
        header: header(block, client),
        offset: 0,
        len: block.b.num_bytes(),
        send_checksums: Some(true),
        caching_strategy: None,
    };
    let answer = begin(&mut stream, READ, &asked).await?;
    let told = answer.read_op_checksum_info.ok_or_else(|| broken("no checksum"))?;
    Ok((stream, told.checksum))
}

async fn forward(
    mut source: Stream,
    checksum: ChecksumProto,
    from: &LocatedBlockProto,
    to: &LocatedBlockProto,
    client: &str,
) -> io::Result<u64> {
    let (first, rest) = to.locs.split_first().ok_or_else(|| broken("no DataNode takes it"))?;
    let mut sink = connect(first).await?;
    let asked = OpWriteBlockProto {
        header: header(to, client),
        targets: rest.to_vec(),
        source: None,
        stage: BlockConstructionStage::PipelineSetupCreate as i32,
        pipeline_size: to.locs.len() as u32,
        min_bytes_rcvd: 0,
        max_bytes_rcvd: 0,
        latest_generation_stamp: to.b.generation_stamp,
        requested_checksum: checksum,
        storage_type: to.storage_types.first().copied(),
        target_storage_types: to.storage_types.iter().skip(1).copied().collect(),
        storage_id: to.storage_i_ds.first().cloned(),
        target_storage_ids: to.storage_i_ds.iter().skip(1).cloned().collect(),
        target_pinnings: vec![false; rest.len()],
        ..OpWriteBlockProto::default()
    };
    begin(&mut sink, WRITE, &asked).await?;
    let mut bytes = 0;
    loop {
        let (packet, head) = packet(&mut source).await?;
        in_time(async {
            sink.write_all(&packet).await?;
            sink.flush().await
        })
        .await?;
        acknowledged(&mut sink, head.seqno).await?;
        bytes += u64::try_from(head.data_len).unwrap_or(0);
        if head.last_packet_in_block {
            break;
        }
    }
    if bytes != from.b.num_bytes() {
        return Err(broken(format!(
            "Recorded block size is {}, but datanode returned {bytes} bytes",
            from.b.num_bytes()
        )));
    }
    let read = ClientReadStatusProto { status: Status::ChecksumOk as i32 };
    // that the source hears of it is a courtesy
    let _ = in_time(async {
        source.write_all(&read.encode_length_delimited_to_vec()).await?;
        source.flush().await
    })
    .await;
    Ok(bytes)
}

/// The next packet as it came, and its header.
async fn packet(source: &mut Stream) -> io::Result<(Vec<u8>, PacketHeaderProto)> {
    in_time(async {
        let mut packet = vec![0; 6];
        source.read_exact(&mut packet).await?;
        let mut start = &packet[..];
        // the first length counts itself
        let (payload, head) = (start.get_u32() as usize, usize::from(start.get_u16()));
        if !(4..PACKET_MAX).contains(&payload) {
            return Err(broken("a packet without end"));
        }
        packet.resize(6 + head + payload - 4, 0);
        source.read_exact(&mut packet[6..]).await?;
        let header = PacketHeaderProto::decode(&packet[6..6 + head]).map_err(io::Error::other)?;
        Ok((packet, header))
    })
    .await
}

/// Waits until all of the pipeline have a packet.
async fn acknowledged(sink: &mut Stream, seqno: i64) -> io::Result<()> {
    loop {
        let ack: PipelineAckProto = message(sink).await?;
        if ack.seqno == HEARTBEAT {
            continue;
        }
        return match ack.reply.iter().find(|status| **status != Status::Success as i32) {
            None if ack.seqno == seqno => Ok(()),
            None => Err(broken(format!("packet {seqno} was answered as {}", ack.seqno))),
            Some(status) => Err(broken(format!("packet {seqno} was refused: {status}"))),
        };
    }
}
