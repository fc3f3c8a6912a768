//! What each vendor demands of a request, checked as strictly as the vendor's own server does.
//!
//! Beyond what a schema says: the order of roles, calls and their results, ids, signatures that only
//! their maker may be sent, fields of other vendors. Facts: the vendors' API references, and what their
//! servers have answered to requests that broke a rule. Where servers of one protocol differ, the
//! strictest counts. Not checked: keys, whether a model exists, and what a window or an account allows.

mod anthropic;
mod chat;
mod findings;
mod google;
mod issued;
mod ollama;
mod pairing;
mod responses;
mod tools;

use serde_json::Value;

use self::findings::Findings;
pub use self::issued::IssuedTokens;
use super::protocol::Wire;
use crate::server::Request;

impl Wire {
    /// Returns the faults for which the vendor would refuse `request`; empty when it is right. `issued` is what the
    /// same vendor has handed out before.
    #[must_use]
    pub fn violations(self, request: &Request, issued: &IssuedTokens) -> Vec<String> {
        let mut findings = Findings::default();
        self.check_head(request, &mut findings);
        match serde_json::from_slice::<Value>(&request.body) {
            Err(error) => findings.add_violation("body", format_args!("is no JSON: {error}")),
            Ok(body) => match self {
                Self::Mistral | Self::OpenAi | Self::Compatible => {
                    chat::check_request(self, &body, issued, &mut findings);
                }
                Self::Anthropic => anthropic::check_request(&body, issued, &mut findings),
                Self::Responses => responses::check_request(&body, issued, &mut findings),
                Self::Google => google::check_request(request.path(), &body, issued, &mut findings),
                Self::Ollama => ollama::check_request(&body, issued, &mut findings),
            },
        }
        findings.into_all()
    }

    /// The request line and the headers.
    fn check_head(self, request: &Request, findings: &mut Findings) {
        findings.add_unless(request.method == "POST", "method", "must be POST");
        let path = request.path();
        if !path.ends_with(self.path_ending()) {
            findings.add_violation(
                "path",
                format_args!("`{path}` does not end with `{}`", self.path_ending()),
            );
        }
        let kind = request.header("content-type").unwrap_or_default();
        findings.add_unless(kind.starts_with("application/json"), "content-type", "must be JSON");
        if self == Self::Anthropic {
            let version = request.header("anthropic-version").is_some();
            findings.add_unless(version, "anthropic-version", "the header is missing");
        }
        if self == Self::Google {
            findings.add_unless(
                request.target.ends_with("?alt=sse"),
                "path",
                "must ask for `alt=sse`",
            );
        }
    }

    /// Returns the suffix of the path of a request for an answer.
    fn path_ending(self) -> &'static str {
        match self {
            Self::Mistral | Self::OpenAi | Self::Compatible => "/v1/chat/completions",
            Self::Anthropic => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Google => ":streamGenerateContent",
            Self::Ollama => "/api/chat",
        }
    }
}

#[cfg(test)]
mod tests;
