//! The versions of the protocol that gnoma speaks, and how it introduces itself.
//!
//! There are two wires: one begins with a handshake (`initialize`), and on the newer one each request says all that
//! the server needs to know.

use serde_json::{Map, Value, json};

use super::wire::rpc::RequestParams;

/// The version without a handshake.
pub(super) const STATELESS: &str = "2026-07-28";
/// The newest version with a handshake.
pub(super) const WITH_HANDSHAKE: &str = "2025-11-25";

/// The choice of the wire that gnoma speaks to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// The server is asked.
    Ask,
    /// The one with the handshake.
    Yes,
}

/// gnoma's name and version.
fn client_info() -> Value {
    json!({"name": "gnoma", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns what gnoma can do for servers: it puts their questions to a person.
fn client_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// The parameters of the handshake.
pub(super) fn initialize_params() -> RequestParams {
    let mut params = Map::new();
    params.insert("protocolVersion".to_owned(), WITH_HANDSHAKE.into());
    params.insert("capabilities".to_owned(), client_capabilities());
    params.insert("clientInfo".to_owned(), client_info());
    params.into()
}

/// Adds to a request's parameters what the wire without a handshake wants in each.
pub(super) fn add_client_meta(params: &mut Map<String, Value>) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    let Some(meta) = meta.as_object_mut() else { return };
    let key = |name: &str| format!("io.modelcontextprotocol/{name}");
    meta.insert(key("protocolVersion"), STATELESS.into());
    meta.insert(key("clientInfo"), client_info());
    meta.insert(key("clientCapabilities"), client_capabilities());
}

/// The facts that a server gives about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerInfo {
    /// The version that is spoken with it.
    pub(super) version: String,
    /// The capabilities of the server; `None` where it gives none that can be read.
    capabilities: Option<Map<String, Value>>,
    /// The odd parts of those facts, a sentence each.
    pub(super) notes: Vec<String>,
}

impl ServerInfo {
    /// Reads the answer to the handshake, or to the question for the server's versions.
    pub(super) fn from_answer(answer: &Value, is_stateless: bool) -> Self {
        let mut notes = Vec::new();
        let version = match answer.get("protocolVersion").and_then(Value::as_str) {
            _ if is_stateless => STATELESS.to_owned(),
            Some(version) if is_date(version) => version.to_owned(),
            Some(other) => {
                let other = gnoma_core::text_truncation::word_prefix(other, 50);
                notes.push(format!("it speaks `{other}`, which is no version of the protocol"));
                WITH_HANDSHAKE.to_owned()
            }
            None => {
                notes.push("it does not say which version of the protocol it speaks".to_owned());
                WITH_HANDSHAKE.to_owned()
            }
        };
        let capabilities = answer.get("capabilities").and_then(Value::as_object).cloned();
        if capabilities.is_none() {
            notes.push("it does not say what it can do, so it is asked for all".to_owned());
        }
        Self { version, capabilities, notes }
    }

    /// Returns whether the server has something of that kind: `tools`, `prompts` or `resources`.
    pub(super) fn has_capability(&self, kind: &str) -> bool {
        let Some(capabilities) = &self.capabilities else { return true };
        !matches!(capabilities.get(kind), None | Some(Value::Null | Value::Bool(false)))
    }

    /// Returns whether the server is asked for its list of that kind. Many servers that were written by hand have tools
    /// and forget to say so.
    pub(super) fn may_list(&self, kind: &str) -> bool {
        let capability = self.capabilities.as_ref().and_then(|all| all.get(kind));
        self.has_capability(kind) || (kind == "tools" && capability != Some(&Value::Bool(false)))
    }

    /// Returns whether the server does not say what it can do.
    pub(super) fn is_silent(&self) -> bool {
        self.capabilities.is_none()
    }

    /// Returns whether it is spoken to without a handshake.
    pub(super) fn is_stateless(&self) -> bool {
        self.version == STATELESS
    }
}

fn is_date(version: &str) -> bool {
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    // The newer wire cannot be spoken after a handshake.
    version.len() == STATELESS.len()
        && version < STATELESS
        && version.bytes().enumerate().all(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_initialize_result_with_missing_or_odd_fields_is_accepted_with_notes() {
        let whole = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "prompts": null}});
        let info = ServerInfo::from_answer(&whole, false);
        assert!(
            info.has_capability("tools")
                && !info.has_capability("prompts")
                && !info.has_capability("resources")
        );
        assert!(info.version == "2025-06-18" && info.notes.is_empty());
        for odd in [json!({}), json!(null), json!({"protocolVersion": 1, "capabilities": []})] {
            let info = ServerInfo::from_answer(&odd, false);
            assert!(info.has_capability("tools") && info.is_silent(), "{odd}");
            assert_eq!((info.version.as_str(), info.notes.len()), (WITH_HANDSHAKE, 2), "{odd}");
        }
        for (capabilities, is_asked) in [
            (json!({}), true),
            (json!({"tools": null}), true),
            (json!({"tools": {}}), true),
            (json!({"tools": false}), false),
        ] {
            let answer = json!({"capabilities": capabilities});
            let info = ServerInfo::from_answer(&answer, false);
            assert_eq!(info.may_list("tools"), is_asked, "{answer}");
            assert!(!info.may_list("prompts"), "{answer}");
        }
        let odd = json!({"protocolVersion": "2026-07-28", "capabilities": {}});
        assert!(!ServerInfo::from_answer(&odd, false).is_stateless());
    }
}
