//! Parses HTTP redirects. Nothing follows a redirect here: who sends a request knows what is in it.

use crate::Reply;

/// The address that an answer redirects to; `None` where it names none.
#[must_use]
pub fn redirect_target(url: &str, reply: &Reply) -> Option<String> {
    let next = reqwest::Url::parse(url).ok()?.join(reply.header("location")?).ok()?;
    Some(next.to_string())
}

/// Returns whether two addresses have scheme, host and port in common.
#[must_use]
pub fn is_same_origin(one: &str, other: &str) -> bool {
    let parsed = |url: &str| reqwest::Url::parse(url).ok();
    parsed(one).zip(parsed(other)).is_some_and(|(one, other)| one.origin() == other.origin())
}

/// An address as it can be shown: without what may be secret in it.
#[must_use]
pub fn without_query(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return String::new() };
    url.set_query(None);
    url.set_fragment(None);
    // Addresses without a host have no user.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_origin_is_scheme_host_and_port() {
        let here = "https://a.example/mcp";
        for same in ["https://a.example/", "https://a.example:443/x?y", "https://A.example/mcp/"] {
            assert!(is_same_origin(here, same), "{same}");
        }
        for other in [
            "http://a.example/mcp",
            "https://b.a.example/",
            "https://a.example:8443/",
            "",
            "file:///",
        ] {
            assert!(!is_same_origin(here, other), "{other}");
        }
        assert_eq!(without_query("https://u:p@a.example/x?key=1#y"), "https://a.example/x");
    }
}
