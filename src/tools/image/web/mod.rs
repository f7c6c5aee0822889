//! Purpose: the Web processor of `oiv`: an image as a read-only WebHDFS, until the process is stopped.
//! Called by: oiv.
//! Calls: the image's source (sections), an HTTP server on the address that was asked for.
//! Never: changes anything; reads the image again once it serves.
//! Invariants: answers are those of Hadoop's viewer byte by byte, refusals with its class names.

mod answer;
mod index;
mod query;

use super::source::Image;
use crate::tools::failure::Failure;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use index::Index;
use query::Query;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

const JSON: &str = "application/json; charset=utf-8";

/// Serves an image at `host:port`.
pub(super) fn serve(open: impl FnOnce() -> Result<Image, Failure>, address: &str) -> Result<(), Failure> {
    let address = parsed(address)?;
    let index = Arc::new(Index::load(open()?)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Failure::content("Address already in use"),
            _ => error.into(),
        })?;
        eprintln!("WebImageViewer started. Listening on {}. Press Ctrl+C to stop the viewer.", listener.local_addr()?);
        let pages = axum::Router::new().fallback(move |request| answer(index.clone(), request));
        Ok(axum::serve(listener, pages).await?)
    })
}

/// The address of `host:port`, refused in Hadoop's words.
fn parsed(text: &str) -> Result<SocketAddr, Failure> {
    let invalid = || {
        let class = "java.lang.IllegalArgumentException";
        Failure::Thrown(format!("{class}: Does not contain a valid host:port authority: {text}"))
    };
    let (host, port) = text.trim().rsplit_once(':').filter(|(host, _)| !host.is_empty()).ok_or_else(invalid)?;
    let port: u32 = port.parse().map_err(|_| invalid())?;
    let port = u16::try_from(port)
        .map_err(|_| Failure::Thrown(format!("java.lang.IllegalArgumentException: port out of range:{port}")))?;
    let mut found = (host, port).to_socket_addrs().into_iter().flatten();
    let unresolved = || Failure::Thrown("java.nio.channels.UnresolvedAddressException".to_owned());
    // as Java does, an address of the older kind first
    let all: Vec<SocketAddr> = found.by_ref().collect();
    all.iter().find(|address| address.is_ipv4()).or(all.first()).copied().ok_or_else(unresolved)
}

async fn answer(index: Arc<Index>, request: Request<Body>) -> Response<Body> {
    let (status, content) = match *request.method() {
        Method::GET => {
            let told = Query::parse(&request.uri().to_string()).and_then(|query| answer::content(&index, &query));
            match told {
                Ok(content) => (StatusCode::OK, Some(content)),
                Err(refusal) => (refusal.status, Some(refusal.content())),
            }
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, None),
    };
    let has_content = content.is_some();
    let mut response = Response::new(content.map_or_else(Body::empty, Body::from));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    if has_content {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    }
    response
}
