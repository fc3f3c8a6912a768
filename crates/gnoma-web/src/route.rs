//! Routes of the HTTP API. Pure: everything that is served has its place in a table or in the protocol, and no path
//! ever becomes the name of a file.

use gnoma_core::{
    protocol::{Epoch, Position},
    store::SessionId,
};
use hyper::Method;

use crate::{
    assets::{Asset, find_asset},
    limits::MAX_ATTACHED,
};

/// The path at which the API begins.
const API: &str = "/api/v1/";
/// The path at which Prometheus reads the metrics.
const METRICS: &str = "/metrics";
/// Longest id of a session and name of a request.
const MAX_WORD_BYTES: usize = 128;

/// Requests without fields that change nothing: they can be asked for with GET as well.
const READS: [&str; 10] = [
    "list",
    "status",
    "points",
    "changes",
    "session_changes",
    "commit_changes",
    "providers",
    "profiles",
    "settings",
    "usage",
];

/// The target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A file of the page.
    Page(&'static Asset),
    /// A token for a cookie.
    Exchange,
    /// A description of this server.
    Hello,
    /// The description of the API.
    Description,
    /// The cost of models in all sessions.
    Usage,
    /// A stream of events, as they happen.
    Events(StreamQuery),
    /// A request of the protocol by its name.
    Call {
        /// The session that it is for.
        session: Option<SessionId>,
        /// The name of the request.
        name: String,
    },
    /// A message of the protocol, whole.
    Message,
    /// Metrics in Prometheus' text format.
    Metrics,
}

/// The events that a stream shall tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamQuery {
    /// `true` if it tells the events of any session of the process.
    pub(crate) process: bool,
    /// The sessions whose events it tells, after these positions.
    pub(crate) sessions: Vec<(SessionId, Option<Position>)>,
}

/// The reason why a request has no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteError {
    /// There is nothing of that name.
    Missing,
    /// There is, but for these methods.
    Method(&'static str),
    /// The part behind the question mark is wrong.
    Query,
}

/// Finds what a request is for.
pub(crate) fn parse_route(
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Result<Route, RouteError> {
    if path == METRICS {
        let reads = *method == Method::GET;
        return if reads { Ok(Route::Metrics) } else { Err(RouteError::Method("GET")) };
    }
    let Some(rest) = path.strip_prefix(API) else {
        let asset = find_asset(path).ok_or(RouteError::Missing)?;
        let reads = matches!(*method, Method::GET | Method::HEAD);
        return if reads { Ok(Route::Page(asset)) } else { Err(RouteError::Method("GET, HEAD")) };
    };
    let mut words = rest.split('/');
    let words = (words.next(), words.next(), words.next(), words.next());
    let (route, expected) = match words {
        (Some("exchange"), None, ..) => (Route::Exchange, Method::POST),
        (Some("hello"), None, ..) => (Route::Hello, Method::GET),
        (Some("openapi.json"), None, ..) => (Route::Description, Method::GET),
        (Some("usage"), None, ..) => (Route::Usage, Method::GET),
        (Some("events"), None, ..) => {
            (Route::Events(parse_stream_query(query.unwrap_or_default())?), Method::GET)
        }
        (Some("messages"), None, ..) => (Route::Message, Method::POST),
        (Some("process"), Some(name), None, _) if is_word(name) => {
            (Route::Call { session: None, name: name.to_owned() }, Method::POST)
        }
        (Some("sessions"), Some(id), Some(name), None) if is_word(id) && is_word(name) => {
            let session = Some(SessionId::new(id));
            (Route::Call { session, name: name.to_owned() }, Method::POST)
        }
        _ => return Err(RouteError::Missing),
    };
    let is_read = matches!(&route, Route::Call { name, .. } if READS.contains(&name.as_str()));
    match (*method == expected, is_read) {
        (true, _) => Ok(route),
        (false, true) if *method == Method::GET => Ok(route),
        (false, true) => Err(RouteError::Method("GET, POST")),
        (false, false) if expected == Method::GET => Err(RouteError::Method("GET")),
        (false, false) => Err(RouteError::Method("POST")),
    }
}

/// Ids and names are of these letters; whatever else stands in a path names nothing.
fn is_word(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_WORD_BYTES).contains(&word.len()) && word.bytes().all(fits)
}

/// Reads a query such as `watch=1&attach=ID&attach=ID@EPOCH.SEQ`.
fn parse_stream_query(query: &str) -> Result<StreamQuery, RouteError> {
    let mut wanted = StreamQuery::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("watch", "1")) => wanted.process = true,
            Some(("attach", place)) => {
                wanted.sessions.push(self::parse_position(place).ok_or(RouteError::Query)?);
            }
            _ => return Err(RouteError::Query),
        }
    }
    if wanted.sessions.len() > MAX_ATTACHED {
        return Err(RouteError::Query);
    }
    Ok(wanted)
}

/// Reads the id of an event, or the id of a session alone.
pub(crate) fn parse_position(text: &str) -> Option<(SessionId, Option<Position>)> {
    let (id, position) = match text.split_once('@') {
        None => (text, None),
        Some((id, position)) => {
            let (epoch, seq) = position.split_once('.')?;
            let (epoch, seq) = (Epoch(epoch.parse().ok()?), seq.parse().ok()?);
            (id, Some(Position { epoch, seq }))
        }
    };
    is_word(id).then(|| (SessionId::new(id), position))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn routes_match_only_listed_paths() {
        let get = |path: &str| parse_route(&Method::GET, path, None);
        assert!(matches!(get("/"), Ok(Route::Page(_))));
        assert!(matches!(get("/app.js"), Ok(Route::Page(_))));
        for path in [
            "/../Cargo.toml",
            "/%2e%2e/etc/passwd",
            "/..%2f..%2fetc/passwd",
            "//etc/passwd",
            "/app.js/",
            "/page/app.js",
            "/app.js%00",
            "/index.html/../app.js",
            "/api/v1/",
            "/api/v1/hello/",
            "/api/v1/sessions/../hello/list",
            "/api/v1/sessions/a%2fb/send",
            "",
            "*",
            "/\\..\\app.js",
        ] {
            assert_eq!(get(path), Err(RouteError::Missing), "{path}");
        }
        assert_eq!(
            parse_route(&Method::POST, "/app.js", None),
            Err(RouteError::Method("GET, HEAD"))
        );
        assert_eq!(get("/api/v1/sessions/a/send"), Err(RouteError::Method("POST")));
        assert!(matches!(get("/api/v1/process/list"), Ok(Route::Call { .. })));
        let put = |path: &str| parse_route(&Method::PUT, path, None);
        assert_eq!(put("/api/v1/sessions/a/usage"), Err(RouteError::Method("GET, POST")));
        assert_eq!(put("/api/v1/hello"), Err(RouteError::Method("GET")));
        assert_eq!(get("/api/v1/openapi.json"), Ok(Route::Description));
        assert_eq!(get("/metrics"), Ok(Route::Metrics));
        assert_eq!(put("/metrics"), Err(RouteError::Method("GET")));
        let call = parse_route(&Method::POST, "/api/v1/sessions/20261122-a/send", None);
        let session = Some(SessionId::new("20261122-a"));
        assert_eq!(call, Ok(Route::Call { session, name: "send".into() }));
    }

    #[test]
    fn event_stream_query_is_parsed() {
        let events = |query: &str| parse_route(&Method::GET, "/api/v1/events", Some(query));
        let at = Position { epoch: Epoch(7), seq: 9 };
        let sessions = vec![(SessionId::new("a"), None), (SessionId::new("b"), Some(at))];
        let wanted = StreamQuery { process: true, sessions };
        assert_eq!(events("watch=1&attach=a&attach=b@7.9"), Ok(Route::Events(wanted)));
        let many = "attach=a&".repeat(MAX_ATTACHED + 1);
        for wrong in ["attach=", "attach=a@", "attach=a@x.1", "attach=a@1", "watch=2", "x", &many] {
            assert_eq!(events(wrong), Err(RouteError::Query), "{wrong}");
        }
    }

    proptest! {
        /// Whatever comes is for something or for nothing.
        #[test]
        fn route_parser_never_panics(path in ".{0,60}", query in ".{0,60}") {
            let found = parse_route(&Method::GET, &path, Some(&query));
            prop_assert!(found.is_err() || path.starts_with('/'));
        }
    }
}
