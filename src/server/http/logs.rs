//! `/logs/`: the files of the log folder, as Hadoop's server lists and sends them. The folder is the administrator's: links in it are followed unless
//! `hadoop.jetty.logs.serve.aliases` is off.

use super::{Web, forbidden, pages};
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cmp::Ordering;
use std::fs::{self, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Bytes read at a time.
const CHUNK_BYTES: u64 = 64 << 10;
/// Most files that are listed.
const FILES_MAX: usize = 10_000;

/// Where logs lie, and how they are served.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The folder (`HADOOP_LOG_DIR`).
    pub folder: PathBuf,
    /// Links are followed.
    pub aliases: bool,
}

/// A file or folder below the log folder.
struct Found {
    path: PathBuf,
    /// As it is asked for, with `/logs/` before it.
    shown: String,
    metadata: Metadata,
}

/// A path of the address: `%xx` decoded, `.`, `..` and empty parts taken out; none if it leads out of the log folder.
fn parts(encoded: &str) -> Option<Vec<Vec<u8>>> {
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for part in encoded.split('/') {
        let part = decoded(part)?;
        match part.as_slice() {
            b"" | b"." => {}
            b".." => drop(parts.pop()?),
            part if part.contains(&b'/') || part.contains(&0) => return None,
            part => parts.push(part.to_vec()),
        }
    }
    Some(parts)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut out) = (text.bytes(), Vec::new());
    while let Some(byte) = bytes.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        out.push(match byte {
            b'%' => (digit(bytes.next())? * 16 + digit(bytes.next())?) as u8,
            byte => byte,
        });
    }
    Some(out)
}

fn find(logs: &Logs, encoded: &str) -> Option<Found> {
    let (mut path, mut shown) = (logs.folder.clone(), "/logs".to_owned());
    for part in parts(encoded)? {
        shown = format!("{shown}/{}", String::from_utf8_lossy(&part));
        path.push(std::ffi::OsString::from_vec(part));
        if !logs.aliases && fs::symlink_metadata(&path).ok()?.is_symlink() {
            return None;
        }
    }
    let metadata = fs::metadata(&path).ok()?;
    (metadata.is_file() || metadata.is_dir()).then_some(Found { path, shown, metadata })
}

/// Answers a request for the folder or what is below it.
pub(super) async fn page(
    State(web): State<Arc<Web>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    if let Some(refusal) = forbidden(&web, web.settings.log_readers.as_ref(), uri.path()).await {
        return refusal;
    }
    let path = uri.path().to_owned();
    let work = move || {
        let logs = web.settings.logs.as_ref()?;
        answer(logs, &path, query.as_deref().unwrap_or_default(), &headers)
    };
    let answer = tokio::task::spawn_blocking(work).await.ok().flatten();
    answer.unwrap_or_else(|| pages::error(StatusCode::NOT_FOUND, uri.path(), "Not Found"))
}

fn answer(logs: &Logs, path: &str, query: &str, headers: &HeaderMap) -> Option<Response> {
    let found = find(logs, path.strip_prefix("/logs").unwrap_or_default())?;
    let moved = |to: String| {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let to = host.map_or_else(|| to.clone(), |host| format!("http://{host}{to}"));
        let location = HeaderValue::from_str(&to).unwrap_or(HeaderValue::from_static("/logs/"));
        (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
    };
    Some(match (found.metadata.is_dir(), path.ends_with('/')) {
        (true, false) => moved(format!("{path}/")),
        (false, true) => moved(path.trim_end_matches('/').to_owned()),
        (true, true) => {
            ([(header::CONTENT_TYPE, "text/html;charset=utf-8")], list(&found, query).ok()?).into_response()
        }
        (false, false) => send(&found, headers).ok()?,
    })
}

/// What a listing is ordered by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Modified,
    Size,
}

/// A line of a listing.
struct Entry {
    name: String,
    modified_ms: i64,
    bytes: u64,
}

/// `C=N|M|S&O=A|D`; by name where it is not to be understood.
fn order(query: &str) -> (Column, bool) {
    let of = |key: &str| query.split('&').filter_map(|pair| pair.split_once('=')).find(|(k, _)| *k == key);
    let column = match of("C") {
        Some((_, "M")) => Column::Modified,
        Some((_, "S")) => Column::Size,
        Some((_, "N")) => Column::Name,
        _ => return (Column::Name, false),
    };
    (column, of("O").is_some_and(|(_, order)| order == "D"))
}

fn list(found: &Found, query: &str) -> io::Result<String> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(&found.path)? {
        let entry = entry?;
        // a link that leads nowhere is not there
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        let slash = if metadata.is_dir() { "/" } else { "" };
        let name = format!("{}{slash}", entry.file_name().to_string_lossy());
        entries.push(Entry { name, modified_ms: modified_ms(&metadata), bytes: metadata.len() });
        if entries.len() == FILES_MAX {
            break;
        }
    }
    let (column, descending) = order(query);
    entries.sort_by(|a, b| {
        let by_name = || a.name.cmp(&b.name);
        let compared: Ordering = match column {
            Column::Name => by_name(),
            Column::Modified => a.modified_ms.cmp(&b.modified_ms).then_with(by_name),
            Column::Size => a.bytes.cmp(&b.bytes).then_with(by_name),
        };
        if descending { compared.reverse() } else { compared }
    });
    Ok(html(&found.shown, &entries, column, descending))
}

fn html(shown: &str, entries: &[Entry], column: Column, descending: bool) -> String {
    let title = pages::escaped(&format!("Directory: {shown}/"));
    let head = |letter: char, class: &str, text: &str, is: Column| {
        let (order, arrow) = match (is == column, descending) {
            (true, false) => ('D', "&nbsp; &#8679;"),
            (true, true) => ('A', "&nbsp; &#8681;"),
            (false, _) => ('A', ""),
        };
        format!("<th class=\"{class}\"><a href=\"?C={letter}&O={order}\">{text}{arrow}</a></th>")
    };
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<link href=\"jetty-dir.css\" rel=\"stylesheet\" />\n\
         <title>{title}</title>\n</head>\n<body>\n<h1 class=\"title\">{title}</h1>\n<table class=\"listing\">\n<thead>\n<tr>{}{}{}</tr>\n\
         </thead>\n<tbody>\n",
        head('N', "name", "Name", Column::Name),
        head('M', "lastmodified", "Last Modified", Column::Modified),
        head('S', "size", "Size", Column::Size)
    );
    let base = encoded(shown);
    if shown != "/logs" {
        text += &format!(
            "<tr><td class=\"name\"><a href=\"{base}/../\">Parent Directory</a></td><td class=\"lastmodified\">-</td><td>-</td></tr>\n"
        );
    }
    for entry in entries {
        let time = Timestamp::from_millisecond(entry.modified_ms).unwrap_or_default().to_zoned(TimeZone::system());
        text += &format!(
            "<tr><td class=\"name\"><a href=\"{base}/{}\">{}&nbsp;</a></td><td class=\"lastmodified\">{}&nbsp;</td><td class=\"size\">{} \
             bytes&nbsp;</td></tr>\n",
            encoded(&entry.name),
            pages::escaped(&entry.name),
            time.strftime("%b %-d, %Y, %-I:%M:%S %p"),
            grouped(entry.bytes)
        );
    }
    text + "</tbody>\n</table>\n</body></html>\n"
}

/// A name as part of an address: what would end it or an attribute is encoded.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~!$&()*+,:=@".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(one).collect()
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn modified_ms(metadata: &Metadata) -> i64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as i64)
}

/// What a browser makes of a file: of most it is text.
fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("txt") => "text/plain",
        Some("html" | "htm") => "text/html",
        Some("xml") => "application/xml",
        Some("json") => "application/json",
        Some("gz") => "application/gzip",
        Some("zip") => "application/zip",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "text/plain;charset=utf-8",
    }
}

/// What a request asks for of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Wanted {
    All,
    /// Some bytes that follow each other.
    Part(Range<u64>),
    /// Nothing that is there.
    Nothing,
}

/// The bytes of a `Range` header. Ranges that do not make one together are not sent apart: the whole file is, as any server may.
fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(header) = header else { return Wanted::All };
    let mut parts: Vec<Range<u64>> =
        header.strip_prefix("bytes=").unwrap_or_default().split(',').filter_map(|one| range(one, length)).collect();
    parts.sort_by_key(|part| part.start);
    let Some(first) = parts.first().cloned() else { return Wanted::Nothing };
    let joined = parts
        .into_iter()
        .try_fold(first, |joined, part| (part.start <= joined.end).then(|| joined.start..joined.end.max(part.end)));
    joined.map_or(Wanted::All, Wanted::Part)
}

/// `first-last`, `first-` or `-count`; none if no byte of it is there.
fn range(text: &str, length: u64) -> Option<Range<u64>> {
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim().is_empty(), last.trim().is_empty()) {
        (true, _) => length.saturating_sub(number(last)?)..length,
        (false, true) => number(first)?..length,
        (false, false) => number(first)?..length.min(number(last)?.saturating_add(1)),
    };
    (range.start < range.end).then_some(range)
}

fn next_piece(mut file: fs::File, left: u64) -> io::Result<(fs::File, Bytes)> {
    let mut piece = vec![0; left.min(CHUNK_BYTES) as usize];
    let count = file.read(&mut piece)?;
    piece.truncate(count);
    // it became shorter meanwhile
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok((file, piece.into())) }
}

/// Sends a file as long as it is now; what is appended meanwhile is for the next request.
fn send(found: &Found, headers: &HeaderMap) -> io::Result<Response> {
    let length = found.metadata.len();
    let seconds = Timestamp::from_second(modified_ms(&found.metadata).div_euclid(1_000)).unwrap_or_default();
    let modified = seconds.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut answer = HeaderMap::new();
    answer.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind(&found.path)));
    if headers.get(header::IF_MODIFIED_SINCE).is_some_and(|since| since.as_bytes() == modified.as_bytes()) {
        return Ok((StatusCode::NOT_MODIFIED, answer).into_response());
    }
    let value = |text: String| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
    answer.insert(header::LAST_MODIFIED, value(modified));
    answer.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (status, wanted) = match wanted(headers.get(header::RANGE).map(|v| v.to_str().unwrap_or_default()), length) {
        Wanted::Part(range) => {
            answer.insert(header::CONTENT_RANGE, value(format!("bytes {}-{}/{length}", range.start, range.end - 1)));
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Wanted::Nothing => {
            answer.insert(header::CONTENT_RANGE, value(format!("bytes */{length}")));
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, answer).into_response());
        }
        Wanted::All => (StatusCode::OK, 0..length),
    };
    answer.insert(header::CONTENT_LENGTH, value((wanted.end - wanted.start).to_string()));
    let mut file = fs::File::open(&found.path)?;
    file.seek(SeekFrom::Start(wanted.start))?;
    let pieces = stream::try_unfold((file, wanted.end - wanted.start), async |(file, left)| {
        if left == 0 {
            return Ok::<_, io::Error>(None);
        }
        let (file, piece) =
            tokio::task::spawn_blocking(move || next_piece(file, left)).await.map_err(io::Error::other)??;
        let left = left - piece.len() as u64;
        Ok(Some((piece, (file, left))))
    });
    Ok((status, answer, Body::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_never_lead_out_of_the_folder() {
        let of = |path: &str| parts(path).map(|parts| parts.concat());
        assert_eq!(of("/a.log"), Some(b"a.log".to_vec()));
        assert_eq!(of("//sub/../a.log"), Some(b"a.log".to_vec()));
        assert_eq!(of("/"), Some(Vec::new()));
        for out in ["/..", "/%2e%2e/x", "/a/../../x", "/a%2f..%2f..%2fx", "/a%00", "/%", "/%zz", "/..%2f"] {
            assert_eq!(of(out), None, "{out}");
        }
    }

    #[test]
    fn numbers_and_ranges() {
        assert_eq!(
            (grouped(14), grouped(3_000), grouped(1_234_567)),
            ("14".into(), "3,000".into(), "1,234,567".into())
        );
        let of = |text: &'static str| wanted(Some(text), 14);
        for (text, part) in [
            ("bytes=2-5", 2..6),
            ("bytes=-4", 10..14),
            ("bytes=-99", 0..14),
            ("bytes=10-", 10..14),
            ("bytes= 2 - 5", 2..6),
            ("bytes=0-18446744073709551615", 0..14),
            // what is not there is left out, and what touches is one
            ("bytes=2-5,100-200", 2..6),
            ("bytes=2-5,", 2..6),
            ("bytes=6-7,2-5,2-3", 2..8),
        ] {
            assert_eq!(of(text), Wanted::Part(part), "{text}");
        }
        for text in ["bytes=20-30", "bytes=14-", "bytes=-0", "bytes=5-2", "bytes=x-", "bytes=", "lines=1-2", ""] {
            assert_eq!(of(text), Wanted::Nothing, "{text}");
        }
        assert_eq!((of("bytes=0-1,5-6"), wanted(None, 14)), (Wanted::All, Wanted::All));
        assert_eq!(wanted(Some("bytes=0-3"), 0), Wanted::Nothing);
    }
}
