//! Pages made by hand.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The start page.
pub const INDEX: &str = r#"<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>NameNode</title></head>
<body>
<h1>NameNode</h1>
<ul>
<li><a href="/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo">NameNodeInfo</a></li>
<li><a href="/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus">NameNodeStatus</a></li>
<li><a href="/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState">FSNamesystemState</a></li>
<li><a href="/jmx">all beans</a></li>
<li><a href="/conf">configuration</a></li>
<li><a href="/startupProgress">start-up progress</a></li>
<li><a href="/logs/">logs</a></li>
<li><a href="/logLevel">levels of the log</a></li>
<li><a href="/stacks">threads</a></li>
</ul>
</body>
</html>
"#;

/// An error page as Hadoop's HTTP server writes it.
pub fn error(status: StatusCode, path: &str, message: &str) -> Response {
    let (code, path, message) = (status.as_u16(), escaped(path), escaped(message));
    let html = format!(
        "<html>\n<head>\n<meta http-equiv=\"Content-Type\" content=\"text/html;charset=ISO-8859-1\"/>\n\
         <title>Error {code} {message}</title>\n</head>\n<body><h2>HTTP ERROR {code} {message}</h2>\n<table>\n\
         <tr><th>URI:</th><td>{path}</td></tr>\n<tr><th>STATUS:</th><td>{code}</td></tr>\n\
         <tr><th>MESSAGE:</th><td>{message}</td></tr>\n</table>\n\n</body>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html;charset=iso-8859-1"),
        (header::CACHE_CONTROL, "must-revalidate,no-cache,no-store"),
    ];
    (status, headers, html).into_response()
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
