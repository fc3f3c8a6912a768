//! HTTP responses and their security headers.

use bytes::Bytes;
use gnoma_core::protocol::{RequestError, RequestErrorKind};
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
        CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, VARY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use serde::Serialize;

use crate::{
    access::Denial,
    assets::{Asset, BUILD, ENCODING},
    body::{BodyReadError, ResponseBody},
    route::RouteError,
};

/// The policy that allows nothing but the page's own files, no script within it, and no text that becomes markup: a
/// string cannot reach the parts of a page that would parse it. The one policy for Trusted Types is made once, by
/// the page itself, and gives the address of its worker and nothing else.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types shell",
);

/// A response without what every response says; [`add_security_headers`] adds it.
pub(crate) type HttpResponse = Response<ResponseBody>;

/// Adds what every response says.
pub(crate) fn add_security_headers(mut response: HttpResponse) -> HttpResponse {
    let fixed = |text| HeaderValue::from_static(text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(X_FRAME_OPTIONS, fixed("DENY"));
    headers.insert(REFERRER_POLICY, fixed("no-referrer"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), fixed("same-origin"));
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, fixed("no-store"));
    }
    response
}

fn build_response(
    status: StatusCode,
    body: ResponseBody,
    media_type: &'static str,
) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A value as JSON.
pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    // Nothing in the protocol fails to encode.
    let text = serde_json::to_vec(value).unwrap_or_default();
    build_response(status, ResponseBody::from_bytes(text), "application/json")
}

/// Metrics for Prometheus.
pub(crate) fn metrics(text: String) -> HttpResponse {
    build_response(
        StatusCode::OK,
        ResponseBody::from_bytes(text),
        "text/plain; version=0.0.4; charset=utf-8",
    )
}

/// A stream of events.
pub(crate) fn event_response(body: ResponseBody) -> HttpResponse {
    build_response(StatusCode::OK, body, "text/event-stream")
}

/// A file of the page; nothing, where the browser has it. It is compressed for those who say that they can read it.
pub(crate) fn file_response(asset: &'static Asset, headers: &HeaderMap) -> HttpResponse {
    let packed = accepts_encoding(headers, ENCODING);
    let tag = if packed { format!("\"{BUILD}\"") } else { format!("\"{BUILD}-plain\"") };
    let is_known =
        headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut answer = if is_known {
        build_response(StatusCode::NOT_MODIFIED, ResponseBody::Whole(None), asset.media_type)
    } else {
        let bytes =
            if packed { Bytes::from_static(asset.bytes) } else { asset.decompress_bytes().into() };
        build_response(StatusCode::OK, ResponseBody::from_bytes(bytes), asset.media_type)
    };
    let headers = answer.headers_mut();
    if packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(ENCODING));
    }
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    answer
}

/// Reports whether a client says that it can read this encoding. One with `q=0` cannot.
fn accepts_encoding(headers: &HeaderMap, encoding: &str) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|offer| {
        let mut parts = offer.split(';').map(str::trim);
        let is_meant = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        is_meant && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// An error, for programs and people.
pub(crate) fn error_response(error: &RequestError) -> HttpResponse {
    json_response(status_code(error.kind), error)
}

/// An error of the way to the host: the server cannot be reached, or has ended.
pub(crate) fn unavailable_response(error: &RequestError) -> HttpResponse {
    let status = match error.kind {
        RequestErrorKind::Closed => StatusCode::SERVICE_UNAVAILABLE,
        kind => status_code(kind),
    };
    json_response(status, error)
}

fn status_code(kind: RequestErrorKind) -> StatusCode {
    match kind {
        RequestErrorKind::Malformed | RequestErrorKind::Unknown | RequestErrorKind::Invalid => {
            StatusCode::BAD_REQUEST
        }
        RequestErrorKind::Refused => StatusCode::FORBIDDEN,
        RequestErrorKind::NoSession | RequestErrorKind::NotFound => StatusCode::NOT_FOUND,
        RequestErrorKind::Held | RequestErrorKind::NotAsked => StatusCode::CONFLICT,
        RequestErrorKind::Closed => StatusCode::GONE,
        RequestErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
        RequestErrorKind::Version => StatusCode::SERVICE_UNAVAILABLE,
        RequestErrorKind::Provider => StatusCode::BAD_GATEWAY,
        RequestErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the answer that explains why a client is denied access.
pub(crate) fn denial_response(denial: Denial) -> HttpResponse {
    let (status, remedy) = match denial {
        Denial::Host => {
            (StatusCode::MISDIRECTED_REQUEST, "Use the address that `gnoma web` shows.")
        }
        Denial::Origin => (StatusCode::FORBIDDEN, "Open the link that `gnoma web` shows."),
        Denial::Token => (StatusCode::UNAUTHORIZED, "Open the link that `gnoma web` shows."),
        Denial::Watching => (StatusCode::FORBIDDEN, "Ask for the other link of `gnoma web`."),
    };
    let refused = RequestError::new(RequestErrorKind::Refused, denial.to_string());
    json_response(status, &refused.with_remedy(remedy))
}

/// Returns the answer that explains why there is no page at the address that was used, in words for people.
pub(crate) fn misdirected_response(host: &str) -> HttpResponse {
    let port = host.rsplit(':').next().unwrap_or_default();
    let text = format!(
        "gnoma does not serve its page at this address. Open http://{host}, and from another machine forward the same \
         port: ssh -N -L {port}:{host} your-machine\n"
    );
    build_response(
        StatusCode::MISDIRECTED_REQUEST,
        ResponseBody::from_bytes(text),
        "text/plain; charset=utf-8",
    )
}

/// A text that is JSON already: the description of the API, or a report.
pub(crate) fn json_text_response(text: String) -> HttpResponse {
    build_response(StatusCode::OK, ResponseBody::from_bytes(text), "application/json")
}

/// Returns the answer that explains why a body was not read.
pub(crate) fn unread_body_response(why: BodyReadError, max: usize) -> HttpResponse {
    let (status, cause) = match why {
        BodyReadError::TooLong => {
            let most =
                if max < 1 << 20 { format!("{max} bytes") } else { format!("{} MB", max >> 20) };
            (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {most}"))
        }
        BodyReadError::TooSlow => {
            (StatusCode::REQUEST_TIMEOUT, "the body takes too long".to_owned())
        }
        BodyReadError::Broken => (StatusCode::BAD_REQUEST, "the body ended early".to_owned()),
    };
    json_response(status, &RequestError::new(RequestErrorKind::Malformed, cause))
}

/// Returns the answer that explains why a request has no target.
pub(crate) fn no_route_response(why: RouteError) -> HttpResponse {
    let (status, kind, cause) = match why {
        RouteError::Missing => {
            (StatusCode::NOT_FOUND, RequestErrorKind::NotFound, "there is nothing at this address")
        }
        RouteError::Method(_) => (
            StatusCode::METHOD_NOT_ALLOWED,
            RequestErrorKind::Invalid,
            "this address takes another method",
        ),
        RouteError::Query => (
            StatusCode::BAD_REQUEST,
            RequestErrorKind::Invalid,
            "the part after the question mark is not valid",
        ),
    };
    let error = RequestError::new(kind, cause);
    let mut answer = json_response(
        status,
        &error.with_remedy("`gnoma protocol --openapi` describes all addresses."),
    );
    if let RouteError::Method(allowed) = why {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    }
    answer
}

/// Too many want the same.
pub(crate) fn busy_response(what: &str) -> HttpResponse {
    let error = RequestError::new(RequestErrorKind::Busy, what);
    json_response(StatusCode::SERVICE_UNAVAILABLE, &error.with_remedy("Close some and retry."))
}
