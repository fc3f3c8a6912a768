//! HTTP requests to authorization servers, within limits and without redirects to other origins. No redirect leads to
//! another origin.

use std::time::Duration;

use bytes::Bytes;
use gnoma_core::Secret;
use gnoma_net::{Http, HttpRequest, NetError, redirect};
use oauth2::{AsyncHttpClient, http};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::super::wire::json;

/// Most redirects that are followed, all at the same origin.
const MAX_REDIRECTS: usize = 5;
/// Largest answer of an authorization server, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Longest wait for one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why an exchange with an authorization server failed.
#[derive(thiserror::Error)]
pub(crate) enum OauthHttpError {
    /// The server did not answer in time; its address.
    #[error("`{0}` did not answer in time")]
    TimedOut(String),
    /// The server cannot be reached.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The server redirects to another origin.
    #[error("it redirects to another place")]
    OtherOrigin,
    /// The server redirects too often.
    #[error("it redirects in a circle")]
    Circle,
    /// The answer is too large.
    #[error("its answer is too large")]
    TooLarge,
    /// The answer is not one of HTTP.
    #[error("its answer cannot be read")]
    Unreadable,
}

gnoma_core::debug_as_display!(OauthHttpError);

/// The connections to authorization servers.
#[derive(Clone, Debug)]
pub(super) struct OauthHttp(pub(super) Http);

/// An answer to an HTTP request.
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    kind: Option<String>,
}

impl HttpAnswer {
    /// The document of a success, if it is an object.
    pub(super) fn json_document(&self) -> Option<Map<String, Value>> {
        const OK: std::ops::Range<u16> = 200..300;
        match json::parse_lenient(&String::from_utf8_lossy(&self.body)) {
            Some(Value::Object(document)) if OK.contains(&self.status) => Some(document),
            _ => None,
        }
    }
}

impl OauthHttp {
    /// Reads the document at an address; `None` where there is none.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn fetch_document(
        &self,
        url: &str,
    ) -> Result<Option<Map<String, Value>>, OauthHttpError> {
        let headers = vec![("accept".to_owned(), "application/json".to_owned())];
        Ok(self.send_within_timeout(url, headers, None).await?.json_document())
    }

    /// Sends a document, and gives the answer.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) async fn post_document(
        &self,
        url: &str,
        document: &Value,
    ) -> Result<HttpAnswer, OauthHttpError> {
        let json = "application/json".to_owned();
        let headers = vec![("accept".to_owned(), json.clone()), ("content-type".to_owned(), json)];
        self.send_within_timeout(url, headers, Some(document.to_string().into_bytes())).await
    }

    async fn send_within_timeout(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
    ) -> Result<HttpAnswer, OauthHttpError> {
        timeout(ANSWER_TIMEOUT, self.send_following_redirects(url, headers, body))
            .await
            .map_err(|_| OauthHttpError::TimedOut(url.to_owned()))?
    }

    async fn send_following_redirects(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
    ) -> Result<HttpAnswer, OauthHttpError> {
        let body = body.map(Bytes::from);
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let headers = headers.iter();
            let request = HttpRequest {
                url: url.clone(),
                headers: headers
                    .map(|(name, value)| (name.clone().into(), Secret::new(value.clone())))
                    .collect(),
                body: body.clone().map(|body| vec![body]),
            };
            let reply = self.0.send(request).await?;
            let next = redirect::redirect_target(&url, &reply);
            match next.filter(|_| (300..400).contains(&reply.status)) {
                Some(next) if redirect::is_same_origin(&url, &next) => url = next,
                Some(_) => return Err(OauthHttpError::OtherOrigin),
                None => {
                    let (status, kind) = (reply.status, reply.header("content-type"));
                    let kind = kind.map(str::to_owned);
                    let body = reply.into_bytes(MAX_ANSWER_BYTES + 1).await?;
                    if body.len() > MAX_ANSWER_BYTES {
                        return Err(OauthHttpError::TooLarge);
                    }
                    return Ok(HttpAnswer { status, body, kind });
                }
            }
        }
        Err(OauthHttpError::Circle)
    }
}

/// The messages of `oauth2` go the same way.
impl<'c> AsyncHttpClient<'c> for OauthHttp {
    type Error = OauthHttpError;
    type Future = std::pin::Pin<
        Box<dyn Future<Output = Result<oauth2::HttpResponse, OauthHttpError>> + Send + 'c>,
    >;

    fn call(&'c self, request: oauth2::HttpRequest) -> Self::Future {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let text = |value: &http::HeaderValue| value.to_str().map(str::to_owned).ok();
            let headers = parts.headers.iter();
            let headers = headers
                .filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)))
                .collect();
            let answer =
                self.send_within_timeout(&parts.uri.to_string(), headers, Some(body)).await?;
            let mut response = http::Response::builder().status(answer.status);
            if let Some(kind) = &answer.kind {
                response = response.header(http::header::CONTENT_TYPE, kind);
            }
            response.body(complete_token_answer(answer)).map_err(|_| OauthHttpError::Unreadable)
        })
    }
}

/// The answer to a request for tokens, with what servers leave out or write in another form.
fn complete_token_answer(answer: HttpAnswer) -> Vec<u8> {
    let Some(mut document) = answer.json_document().filter(|it| it.contains_key("access_token"))
    else {
        return answer.body;
    };
    document.entry("token_type").or_insert_with(|| "Bearer".into());
    let seconds = document.get("expires_in").and_then(|value| match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    });
    match seconds.filter(|seconds| *seconds >= 0.0) {
        Some(seconds) => document.insert("expires_in".to_owned(), (seconds as u64).into()),
        None => document.remove("expires_in"),
    };
    for optional in ["refresh_token", "scope"] {
        if document.get(optional).is_some_and(|value| !value.is_string()) {
            document.remove(optional);
        }
    }
    Value::Object(document).to_string().into_bytes()
}
