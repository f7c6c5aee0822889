//! Purpose: the web side: JMX, configuration, start-up progress, whether this is the active; one router per feature.
//! Called by: the binary's node assembly.
//! Calls: engine (short views of the state), observe (progress).
//! Never: holds the state lock while a page is written; answers a request about the state before there is one.
//! Invariants: the server runs from before the load to the end of the process; what is not loaded yet is absent, not invented.

mod beans;
mod caller;
mod fsck;
mod image;
pub mod jmx;
pub mod json;
pub mod levels;
mod listen;
mod log_level;
mod logs;
mod metrics;
mod pages;
mod progress;
mod slow;
mod snapshots;
mod stacks;
mod top;

pub use beans::NameNodeBeans;
pub(crate) use beans::nobody;
pub use image::Transfers;
pub use listen::{Remote, Server, bind};
pub use logs::Logs;

use axum::Router;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use levels::Levels;
use observe::progress::StartupProgress;
use security::service::AccessList;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Names of the beans that there always are, in the order they are listed; two for each RPC port follow.
pub const BEANS: [&str; 16] = [
    "Hadoop:service=NameNode,name=FSNamesystem",
    "Hadoop:service=NameNode,name=NameNodeStatus",
    "Hadoop:service=NameNode,name=NameNodeInfo",
    "Hadoop:service=NameNode,name=FSNamesystemState",
    "Hadoop:service=NameNode,name=NameNodeActivity",
    "Hadoop:service=NameNode,name=JvmMetrics",
    "Hadoop:service=NameNode,name=BlockStats",
    "Hadoop:service=NameNode,name=ReplicatedBlocksState",
    "Hadoop:service=NameNode,name=ECBlockGroupsState",
    "java.lang:type=Memory",
    "java.lang:type=Threading",
    "java.lang:type=OperatingSystem",
    "Ironroot:name=StateLock",
    "Ironroot:name=Memory",
    "Hadoop:service=NameNode,name=SnapshotInfo",
    "Hadoop:service=NameNode,name=NNTopUserOpCounts",
];

/// The configuration as `/conf` shows it; the binary knows it.
pub trait Configuration: Send + Sync {
    /// XML of all keys, or of one; `None` if that is not set.
    fn xml(&self, name: Option<&str>) -> Option<String>;
    /// The same as JSON.
    fn json(&self, name: Option<&str>) -> Option<String>;
}

/// What the pages tell of the loaded name node.
pub trait Node: Send + Sync {
    /// Whether it is the active one.
    fn is_active(&self) -> bool;
    /// How it calls its own host.
    fn host(&self) -> &str;
    /// Names of all beans.
    fn names(&self) -> Vec<String> {
        BEANS.map(str::to_owned).to_vec()
    }
    /// A bean of [`Node::names`], made anew.
    fn bean(&self, name: &str) -> Option<jmx::Bean>;
    /// What the protocols share, for pages that do what they do.
    fn shared(&self) -> Option<Arc<crate::service::Shared>> {
        None
    }
}

/// What the pages obey.
#[derive(Clone, Default)]
pub struct WebSettings {
    /// `X-FRAME-OPTIONS` header, if it is sent.
    pub frame_options: Option<String>,
    /// The user of requests that name none (`hadoop.http.staticuser.user`).
    pub static_user: String,
    /// `/prom` is served (`hadoop.prometheus.endpoint.enabled`).
    pub prometheus: bool,
    /// Who alone may see beans, configuration and threads, if not all may.
    pub administrators: Option<AccessList>,
    /// Who alone may see logs and change their levels, if not all may.
    pub log_readers: Option<AccessList>,
    /// The logs that are served, if they are.
    pub logs: Option<Logs>,
    /// Levels of the log, where they can be changed.
    pub levels: Option<Arc<Levels>>,
    /// Limits of image transfers.
    pub transfers: Transfers,
}

/// What the pages show. Shared by all requests.
pub struct Web {
    /// Progress of the start.
    pub progress: Arc<StartupProgress>,
    /// The configuration.
    pub configuration: Box<dyn Configuration>,
    /// What they obey.
    pub settings: WebSettings,
    /// Set once the state is loaded.
    pub node: OnceLock<Arc<dyn Node>>,
}

impl Web {
    /// Pages of a name node that has not loaded anything yet.
    pub fn new(progress: Arc<StartupProgress>, configuration: Box<dyn Configuration>, settings: WebSettings) -> Web {
        Web { progress, configuration, settings, node: OnceLock::new() }
    }
}

type Shared = State<Arc<Web>>;

/// What stands behind the `?` of an address. Of several values of one name the first counts, as in Java.
struct Parameters(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = <Query<Vec<(String, String)>> as FromRequestParts<S>>::Rejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Parameters, Self::Rejection> {
        let Query(pairs) = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await?;
        let mut first = HashMap::new();
        pairs.into_iter().for_each(|(name, value)| _ = first.entry(name).or_insert(value));
        Ok(Parameters(first))
    }
}

/// All pages. Features that come later bring a router of their own.
pub fn router(web: Arc<Web>) -> Router {
    Router::new()
        .route("/", get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/index.html")]) }))
        .route("/index.html", get(|| async { ([(header::CONTENT_TYPE, "text/html")], pages::INDEX) }))
        .route("/jmx", get(jmx_page))
        .route("/conf", get(conf))
        .route("/isActive", get(is_active))
        .route("/startupProgress", get(startup_progress))
        .route("/prom", get(prometheus))
        .route("/fsck", get(fsck::page))
        .route("/stacks", get(stacks_page))
        .route("/logLevel", get(log_level::page))
        .route("/logs", get(logs::page).post(logs::page))
        .route("/logs/", get(logs::page).post(logs::page))
        .route("/logs/{*path}", get(logs::page).post(logs::page))
        .route("/imagetransfer", get(image::get).put(image::put))
        .fallback(async |request: Request| pages::error(StatusCode::NOT_FOUND, request.uri().path(), "Not Found"))
        .method_not_allowed_fallback(async |request: Request| {
            let message = format!("HTTP method {} is not supported by this URL", request.method());
            pages::error(StatusCode::METHOD_NOT_ALLOWED, request.uri().path(), &message)
        })
        .layer(from_fn_with_state(web.clone(), common))
        .with_state(web)
}

/// What may be asked of a page, as Hadoop's server tells it. Clients that would prove who they are ask this first (`hadoop daemonlog`).
fn options(path: &str) -> Response {
    let allowed = match path {
        "/imagetransfer" => "GET, HEAD, PUT, TRACE, OPTIONS",
        "/conf" | "/fsck" | "/isActive" | "/jmx" | "/logLevel" | "/prom" | "/stacks" | "/startupProgress" => {
            "GET, HEAD, TRACE, OPTIONS"
        }
        _ => "GET,HEAD,POST,OPTIONS",
    };
    ([(header::CONTENT_TYPE, "text/plain;charset=utf-8"), (header::ALLOW, allowed)], ()).into_response()
}

/// Headers of every answer, and the methods that no page has of its own.
async fn common(State(web): Shared, request: Request, next: Next) -> Response {
    let mut response = match *request.method() {
        Method::TRACE => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        Method::OPTIONS => options(request.uri().path()),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::X_XSS_PROTECTION, HeaderValue::from_static("1; mode=block"));
    if let Some(Ok(value)) = web.settings.frame_options.as_deref().map(HeaderValue::from_str) {
        headers.insert(header::X_FRAME_OPTIONS, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

/// A refusal whose reason phrase tells what is wrong, as Hadoop's clients of the transfer pages want it. Line ends cannot be in it.
fn refuse(status: StatusCode, text: &str) -> Response {
    let mut response = (status, [(header::CONTENT_TYPE, "text/plain;charset=utf-8")], ()).into_response();
    let shown: String = text.chars().map(|c| if c.is_control() || !c.is_ascii() { '?' } else { c }).collect();
    if let Ok(phrase) = hyper::ext::ReasonPhrase::try_from(shown.into_bytes()) {
        response.extensions_mut().insert(phrase);
    }
    response
}

fn body(kind: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// The refusal of a page that only administrators may see. Over HTTP everybody is the static user, unless proven to be somebody else.
async fn forbidden(web: &Web, administrators: Option<&AccessList>, path: &str) -> Option<Response> {
    let administrators = administrators?;
    let shared = web.node.get().and_then(|node| node.shared());
    let user = &web.settings.static_user;
    let groups = match shared {
        Some(shared) => shared.users.groups().of(user).await.groups,
        None => Default::default(),
    };
    if administrators.has(&vocab::Caller { user: user.as_str().into(), groups, ..nobody() }) {
        return None;
    }
    tracing::warn!("User {user} is unauthorized to access the page {path}.");
    Some(pages::error(StatusCode::FORBIDDEN, path, "Unauthenticated users are not authorized to access this page."))
}

async fn jmx_page(State(web): Shared, Parameters(parameters): Parameters, uri: Uri) -> Response {
    if let Some(refusal) = forbidden(&web, web.settings.administrators.as_ref(), uri.path()).await {
        return refusal;
    }
    let parameter = |name: &str| parameters.get(name).map(String::as_str);
    let node = web.node.get();
    let names = node.map(|node| node.names()).unwrap_or_default();
    let text = jmx::answer(parameter("qry"), parameter("get"), &names, &|name| node?.bean(name));
    let cross_origin = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET")),
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*")),
    ];
    (cross_origin, body("application/json; charset=utf8", text)).into_response()
}

/// All metrics, in the form of Hadoop's sink for Prometheus.
async fn prometheus(State(web): Shared, request: Request) -> Response {
    let Some(node) = web.node.get().filter(|_| web.settings.prometheus) else {
        return pages::error(StatusCode::NOT_FOUND, request.uri().path(), "Not Found");
    };
    let beans: Vec<jmx::Bean> = node.names().iter().filter_map(|name| node.bean(name)).collect();
    body("text/plain;charset=utf-8", metrics::prometheus(&beans))
}

/// The format follows the `Accept` header alone. A key that is not set is a 404 without a body.
async fn conf(State(web): Shared, headers: HeaderMap, Parameters(parameters): Parameters, uri: Uri) -> Response {
    if let Some(refusal) = forbidden(&web, web.settings.administrators.as_ref(), uri.path()).await {
        return refusal;
    }
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    let name = parameters.get("name").map(String::as_str).filter(|n| !n.is_empty());
    let (kind, text) = if accept.contains("application/json") {
        ("application/json;charset=utf-8", web.configuration.json(name))
    } else {
        ("text/xml;charset=utf-8", web.configuration.xml(name))
    };
    let status = if text.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    (status, body(kind, text.unwrap_or_default())).into_response()
}

async fn stacks_page(State(web): Shared, uri: Uri) -> Response {
    if let Some(refusal) = forbidden(&web, web.settings.administrators.as_ref(), uri.path()).await {
        return refusal;
    }
    let text = tokio::task::spawn_blocking(stacks::text).await.unwrap_or_default();
    body("text/plain;charset=utf-8", text)
}

async fn is_active(State(web): Shared, request: Request) -> Response {
    if web.node.get().is_some_and(|node| node.is_active()) {
        return body("text/plain;charset=utf-8", "I am Active!".to_owned());
    }
    pages::error(StatusCode::METHOD_NOT_ALLOWED, request.uri().path(), "I am not active!")
}

async fn startup_progress(State(web): Shared) -> Response {
    body("application/json;charset=utf-8", progress::json(&web.progress.snapshot()).compact())
}

#[cfg(test)]
mod tests;
