//! `/logLevel`: tells and changes the level of a logger (`hadoop daemonlog`), in Hadoop's words: its client looks for them.

use super::levels::Level;
use super::{Parameters, Web, forbidden, pages};
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// The kind of logger that Hadoop's server tells of.
const LOG_CLASS: &str = "org.slf4j.impl.Reload4jLoggerAdapter";
/// Before each line of an outcome: the client prints what is between this and the end of the line.
const MARK: &str = "<!-- OUTPUT -->";

/// Answers a request: `log` names the logger, `level` what it is to have.
pub(super) async fn page(State(web): State<Arc<Web>>, Parameters(parameters): Parameters, uri: Uri) -> Response {
    if let Some(refusal) = forbidden(&web, web.settings.log_readers.as_ref(), uri.path()).await {
        return refusal;
    }
    // control characters are blanks, as in Java
    let trimmed = |text: &'_ String| -> String { text.trim_matches(|c| c <= ' ').to_owned() };
    let parameter = |name: &str| parameters.get(name).map(trimmed).filter(|text| !text.is_empty());
    let outcome =
        parameter("log").map_or_else(String::new, |logger| outcome(&web, &logger, parameter("level").as_deref()));
    let year = jiff::Zoned::now().year();
    let text = format!(
        "<html>\n<link rel='stylesheet' type='text/css' href='/static/hadoop.css'>\n<title>Log Level</title>\n<body>\n<h1>Log Level</h1>\n\n\
         {outcome}\n<br /><hr /><h3>Get / Set</h3>\n<form>Class Name: <input type='text' size='50' name='log' /> <input type='submit' \
         value='Get Log Level' /></form>\n<form>Class Name: <input type='text' size='50' name='log' /> Level: <input type='text' \
         name='level' /> <input type='submit' value='Set Log Level' /></form>\n<hr />\n<a href='http://hadoop.apache.org'>Hadoop</a>, \
         {year}.\n</body></html>\n"
    );
    ([(header::CONTENT_TYPE, "text/html;charset=utf-8")], text).into_response()
}

fn outcome(web: &Web, logger: &str, level: Option<&str>) -> String {
    let shown = pages::escaped(logger);
    let mut text = format!(
        "<br /><hr /><h3>Results</h3>\n{MARK}Submitted Class Name: <b>{shown}</b><br />\n{MARK}Log Class: <b>{LOG_CLASS}</b><br />\n"
    );
    if let Some(wanted) = level {
        let shown = pages::escaped(wanted);
        text += &format!("{MARK}Submitted Level: <b>{shown}</b><br />\n");
        match (Level::parse(wanted), &web.settings.levels) {
            (Some(level), Some(levels)) => {
                levels.set(logger, level);
                text += &format!("{MARK}Setting Level to {shown} ...<br />\n");
            }
            _ => text += &format!("{MARK}Bad Level : <b>{shown}</b><br />\n"),
        }
    }
    let effective = web.settings.levels.as_ref().map_or(Level::Info, |levels| levels.effective(logger));
    text + &format!("{MARK}Effective Level: <b>{}</b><br />\n", effective.name())
}
