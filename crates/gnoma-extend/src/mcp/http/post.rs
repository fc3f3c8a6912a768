//! Sends one message: follows redirects within the server's origin, says who asks, and waits for a server that is busy.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gnoma_core::Secret;
use gnoma_net::{
    HttpRequest, NetError, NetErrorKind, Reply, redirect,
    retry_wait::{asked_wait, sent_at},
};
use jiff::Timestamp;
use tokio::time::sleep;

use super::{
    super::{
        error::{CallError, TOO_MANY_REQUESTS},
        limits::{BUSY_WAIT, MAX_ATTEMPTS, MAX_BUSY_WAIT, MAX_REDIRECTS},
        wire::rpc::{self, METHOD_NOT_FOUND, RpcError, ServerRpcMessage},
    },
    state::HttpShared,
};

/// Statuses of redirects that are for good (RFC 9110 §15.4).
const PERMANENT: [u16; 2] = [301, 308];
/// Most of a refusal that is read, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// The status of a server that wants to know who asks.
const UNAUTHORIZED: u16 = 401;
/// The status of a service that is not there for a while.
const UNAVAILABLE: u16 = 503;

/// A message to the server.
pub(super) struct Message<'a> {
    /// The body; without one the message is a GET for a stream of events.
    pub(super) body: Option<String>,
    /// Headers besides those of each request.
    pub(super) headers: &'a [(String, String)],
    /// `true` if the message may be sent again although the server may have worked on it.
    pub(super) is_repeatable: bool,
}

/// The next step after an answer: take it, or send the message again.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, and it is taken apart at once"
)]
enum PostStep {
    Done(Reply),
    Again,
}

/// One message on its way.
struct MessagePost<'a> {
    shared: &'a Arc<HttpShared>,
    message: &'a Message<'a>,
    url: String,
    token: Option<Secret<String>>,
    redirects: usize,
    /// All redirects so far were for good.
    has_moved: bool,
    attempts: u32,
    has_new_token: bool,
}

/// Sends a message, and gives the answer to it, whose status is a success.
pub(super) async fn post_message(
    shared: &Arc<HttpShared>,
    message: &Message<'_>,
) -> Result<Reply, CallError> {
    let token = match shared.has_own_authorization() {
        true => None,
        false => shared.authorizer.token().await?,
    };
    let url = shared.place.lock().url.clone();
    let mut sending = MessagePost {
        shared,
        message,
        url,
        token,
        redirects: 0,
        has_moved: true,
        attempts: 1,
        has_new_token: false,
    };
    loop {
        let reply = shared.http.send(sending.build_request()).await.map_err(net_error)?;
        if let PostStep::Done(reply) = sending.handle_reply(reply).await? {
            return Ok(reply);
        }
    }
}

impl MessagePost<'_> {
    fn build_request(&self) -> HttpRequest {
        const ACCEPT: &str = "application/json, text/event-stream";
        let mut headers = self.shared.headers(self.message.headers, self.token.as_ref());
        let mut plain = |name: &'static str, value: &str| {
            headers.push((name.into(), Secret::new(value.to_owned())));
        };
        plain("accept", if self.message.body.is_some() { ACCEPT } else { "text/event-stream" });
        if self.message.body.is_some() {
            plain("content-type", "application/json");
        }
        let body = self.message.body.clone().map(|body| vec![Bytes::from(body)]);
        HttpRequest { url: self.url.clone(), headers, body }
    }

    async fn handle_reply(&mut self, reply: Reply) -> Result<PostStep, CallError> {
        match reply.status {
            200..=299 => {
                self.remember_address();
                Ok(PostStep::Done(reply))
            }
            300..=399 => self.follow_redirect(&reply),
            UNAUTHORIZED => {
                let challenge = reply.header("www-authenticate").unwrap_or_default().to_owned();
                self.renew_token(challenge).await
            }
            TOO_MANY_REQUESTS | UNAVAILABLE => self.wait_until_ready(reply).await,
            _ => Err(refusal_error(self.shared, reply).await),
        }
    }

    /// A redirect within the origin is followed with the whole message: elsewhere its headers must not go.
    fn follow_redirect(&mut self, reply: &Reply) -> Result<PostStep, CallError> {
        let Some(next) = redirect::redirect_target(&self.url, reply) else {
            return Err(CallError::Status(
                reply.status,
                "a redirect that leads nowhere".to_owned(),
            ));
        };
        if !redirect::is_same_origin(&self.url, &next) {
            return Err(CallError::Moved(redirect::without_query(&next)));
        }
        self.redirects += 1;
        if self.redirects > MAX_REDIRECTS {
            return Err(CallError::Status(reply.status, "it redirects in a circle".to_owned()));
        }
        self.has_moved &= PERMANENT.contains(&reply.status);
        self.url = next;
        Ok(PostStep::Again)
    }

    /// Sends what follows to where a message has been taken after redirects that were for good. A stream of events says
    /// nothing of where messages go.
    fn remember_address(&self) {
        if self.redirects > 0 && self.has_moved && self.message.body.is_some() {
            self.shared.place.lock().url.clone_from(&self.url);
        }
    }

    /// A token that is refused may be renewed once.
    async fn renew_token(&mut self, challenge: String) -> Result<PostStep, CallError> {
        if self.shared.has_own_authorization() {
            let said = "it does not accept the header `Authorization` of its entry";
            return Err(CallError::Status(UNAUTHORIZED, said.to_owned()));
        }
        if !std::mem::replace(&mut self.has_new_token, true)
            && let Some(refused) = self.token.take()
            && let Some(token) = self.shared.authorizer.renew_token(&refused).await?
        {
            self.token = Some(token);
            return Ok(PostStep::Again);
        }
        Err(CallError::Unauthorized(challenge))
    }

    /// A server that is busy is waited for, a few times and not for long.
    async fn wait_until_ready(&mut self, reply: Reply) -> Result<PostStep, CallError> {
        let status = reply.status;
        let now = sent_at(reply.header("date")).unwrap_or_else(Timestamp::now);
        let headers = ["retry-after-ms", "retry-after"];
        let headers = headers.iter().filter_map(|name| Some((*name, reply.header(name)?)));
        let headers: Vec<_> = headers.collect();
        let asked = asked_wait(&headers, now);
        let is_safe =
            status == TOO_MANY_REQUESTS || !headers.is_empty() || self.message.is_repeatable;
        let wait = asked.unwrap_or(BUSY_WAIT * self.attempts);
        if !is_safe || wait > MAX_BUSY_WAIT || self.attempts >= MAX_ATTEMPTS {
            let asked = asked.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            return Err(CallError::Busy(status, asked));
        }
        self.attempts += 1;
        // The server's own stream says nothing of how long calls take.
        if self.message.body.is_some() {
            self.shared.handler.calls.extend_deadlines(wait);
        }
        sleep(wait.max(Duration::from_millis(1))).await;
        Ok(PostStep::Again)
    }
}

/// Converts an error of the connection to the error of the call.
pub(super) fn net_error(error: NetError) -> CallError {
    match error.kind {
        NetErrorKind::Timeout | NetErrorKind::Broken => CallError::Broken(error.to_string()),
        NetErrorKind::Invalid
        | NetErrorKind::Connect
        | NetErrorKind::Proxy
        | NetErrorKind::Certificate
        | NetErrorKind::ClientCertificate
        | NetErrorKind::Authorities
        | NetErrorKind::NoTls
        | NetErrorKind::NoHttp => CallError::Unreachable(error),
    }
}

/// Converts a status other than success to the error of the call.
async fn refusal_error(shared: &HttpShared, reply: Reply) -> CallError {
    const FORBIDDEN: u16 = 403;
    let status = reply.status;
    let challenge = reply.header("www-authenticate").unwrap_or_default().to_owned();
    if status == FORBIDDEN && challenge.contains("insufficient_scope") {
        return CallError::Unauthorized(challenge);
    }
    let is_page = reply.header("content-type").is_some_and(|kind| kind.contains("html"));
    let body = reply.into_bytes(MAX_REFUSAL_BYTES).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body).into_owned();
    let start = text.trim_start().to_ascii_lowercase();
    let is_page = is_page || start.starts_with("<!doctype html") || start.starts_with("<html");
    let error = rpc::parse_messages(&text).into_iter().find_map(|message| match message {
        ServerRpcMessage::Response(_, Err(error)) | ServerRpcMessage::Orphan(error) => Some(error),
        _ => None,
    });
    let said = error.as_ref().map_or(text.as_str(), |error| error.message.as_str());
    let has_session = *shared.sessions.borrow() > 0;
    if has_session && is_session_lost(status, error.as_ref(), said) {
        return CallError::SessionLost(said.to_owned());
    }
    match error {
        Some(error) => CallError::Refused(error),
        None if is_page => CallError::Status(status, page_title(&text).unwrap_or_default()),
        None => CallError::Status(status, text),
    }
}

/// The title of a page in HTML, on one line.
pub(super) fn page_title(text: &str) -> Option<String> {
    const BEGIN: &str = "<title";
    /// Longest title that is shown, in bytes.
    const MAX_SHOWN_BYTES: usize = 80;
    let lower = text.to_ascii_lowercase();
    let at = lower.find(BEGIN)? + BEGIN.len();
    let begin = at + lower.get(at..)?.find('>')? + 1;
    let end = begin + lower.get(begin..)?.find('<')?;
    let title = text.get(begin..end)?.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = gnoma_core::text_truncation::word_prefix(&title, MAX_SHOWN_BYTES).to_owned();
    Some(title).filter(|title| !title.is_empty())
}

/// Returns whether a refusal means that the server does not know the session. Servers have many words for it.
pub(super) fn is_session_lost(status: u16, error: Option<&RpcError>, said: &str) -> bool {
    const GONE: [u16; 2] = [404, 410];
    if error.is_some_and(|error| error.code == METHOD_NOT_FOUND) {
        return false;
    }
    let lower = said.to_lowercase();
    let is_about_session =
        (lower.contains("session") && is_about_loss(&lower)) || lacks_handshake(&lower);
    GONE.contains(&status) || is_about_session
}

/// Returns whether a server says that nobody has begun a session with it.
pub(super) fn lacks_handshake(said: &str) -> bool {
    const WORDS: [&str; 4] =
        ["not initialized", "uninitialized", "not been initialized", "before initialization"];
    let said = said.to_lowercase();
    WORDS.iter().any(|word| said.contains(word))
}

fn is_about_loss(said: &str) -> bool {
    const WORDS: [&str; 13] = [
        "not found",
        "no valid",
        "invalid",
        "expired",
        "unknown",
        "missing",
        "terminated",
        "not exist",
        "closed",
        "no such",
        "no active",
        "required",
        "not valid",
    ];
    WORDS.iter().any(|word| said.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_page_instead_of_an_mcp_answer_is_named_by_its_title() {
        for (page, title) in [
            ("<html><head><TITLE lang=de>\n Sign\n in </TITLE>", Some("Sign in")),
            ("<title></title>", None),
            ("<title>cut", None),
            ("<p>no title</p>", None),
        ] {
            assert_eq!(page_title(page).as_deref(), title, "{page}");
        }
    }

    #[test]
    fn mcp_lost_session_is_recognized_by_status_or_message() {
        for (status, said) in [
            (404, ""),
            (404, "Session not found"),
            (400, "Bad Request: No valid session ID provided"),
            (400, "Bad Request: Server not initialized"),
            (400, "Mcp-Session-Id header is required"),
            (200, "Invalid session ID"),
            (410, "gone"),
        ] {
            assert!(is_session_lost(status, None, said), "{status} {said}");
        }
        for (status, said) in
            [(400, "bad arguments"), (500, ""), (403, "no"), (200, "no session here")]
        {
            assert!(!is_session_lost(status, None, said), "{status} {said}");
        }
        let unknown = RpcError::new(METHOD_NOT_FOUND, "no such method");
        assert!(!is_session_lost(404, Some(&unknown), "no such method"));
    }
}
