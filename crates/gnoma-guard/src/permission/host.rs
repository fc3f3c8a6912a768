//! Hosts: of addresses that tools are given, and of rules such as `web(*.example.com)`.
//!
//! An address is read only as far as its host, and strictly: what two readers could take for two
//! hosts has none.

use std::fmt;

const MAX_HOST_BYTES: usize = 253;

/// A host, or all below one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPattern {
    host: String,
    below: bool,
}

/// The fault of a text that is not a host, or hosts below a domain.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPatternError {
    /// The text is not a host.
    #[error(
        "it needs a host such as `example.com` or `*.example.com`, without scheme, port or path"
    )]
    NoHost,
    /// The domain after `*.` has one part.
    #[error("`*.` needs a domain of at least two parts after it")]
    ShortDomain,
}

gnoma_core::debug_as_display!(HostPatternError);

impl HostPattern {
    /// Reads a host as it is in a rule. With `is_open`, for rules that never allow, `*.` may stand before a domain of
    /// one part.
    ///
    /// # Errors
    /// The text names no host, or hosts below a domain of one part.
    pub(crate) fn parse(text: &str, is_open: bool) -> Result<Self, HostPatternError> {
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let host = plain_host(name).ok_or(HostPatternError::NoHost)?;
        if below && !is_open && !host.contains('.') {
            return Err(HostPatternError::ShortDomain);
        }
        Ok(Self { host, below })
    }

    pub(crate) fn from_host(host: &str) -> Option<Self> {
        Self::parse(host, false).ok().filter(|pattern| !pattern.below && pattern.host == host)
    }

    /// Reports whether the rule is about exactly this host.
    pub(crate) fn covers_host(&self, host: &str) -> bool {
        if self.below { self.is_above(host) } else { self.host == host }
    }

    /// Reports whether a rule that forbids is about the host, however the host is written: also about everything
    /// below a host.
    pub(crate) fn touches_host(&self, host: &str) -> bool {
        let host = resolved_spelling(host);
        (!self.below && self.host == host) || self.is_above(&host)
    }

    fn is_above(&self, host: &str) -> bool {
        host.strip_suffix(&self.host).is_some_and(|before| before.ends_with('.'))
    }

    pub(crate) fn is_exact(&self) -> bool {
        !self.below
    }

    pub(crate) fn specificity_score(&self) -> usize {
        self.host.len()
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below {
            f.write_str("*.")?;
        }
        f.write_str(&self.host)
    }
}

/// A host as programs look it up: without escapes, in lower case, with ASCII dots and none at its end.
fn resolved_spelling(host: &str) -> String {
    let mut bytes = Vec::with_capacity(host.len());
    let mut rest = host.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let pair = after.get(..2).filter(|_| *byte == b'%');
        let escape = pair
            .filter(|pair| pair.iter().all(u8::is_ascii_hexdigit))
            .and_then(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
        bytes.push(escape.unwrap_or(*byte));
        rest = if escape.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    // IDNA takes these for dots.
    let text = text.replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".");
    text.trim_end_matches('.').to_owned()
}

/// The host of a web address; `None` where readers could differ about it.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end)?;
    let host = match authority.rsplit_once(':') {
        Some((host, port)) => port.bytes().all(|byte| byte.is_ascii_digit()).then_some(host)?,
        None => authority,
    };
    plain_host(host)
}

/// A host in lower case when it is nothing but ASCII letters, digits, hyphens and dots.
pub(crate) fn plain_host(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let fits = text.len() <= MAX_HOST_BYTES && text.split('.').all(is_label);
    fits.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_rejects_ambiguous_urls_with_userinfo_backslash_or_unicode() {
        for (address, host) in [
            ("https://Example.com/x?y", Some("example.com")),
            ("http://example.com:8080", Some("example.com")),
            ("https://example.com.", Some("example.com")),
            ("https://user@example.com/", None),
            ("https://evil.example\\@example.com/", None),
            ("https://ex\u{430}mple.com/", None),
            ("https://example.com:80:90/", None),
            ("ftp://example.com/", None),
            ("file:///etc/passwd", None),
            ("example.com", None),
            ("https://a b/", None),
        ] {
            assert_eq!(host_of(address).as_deref(), host, "{address}");
        }
    }

    #[test]
    fn host_allow_rule_is_exact_and_host_deny_rule_covers_subdomains() {
        let host = HostPattern::parse("example.com", false).unwrap();
        assert!(host.covers_host("example.com") && !host.covers_host("www.example.com"));
        assert!(host.touches_host("www.example.com") && !host.touches_host("notexample.com"));
        let below = HostPattern::parse("*.example.com", false).unwrap();
        assert!(below.covers_host("a.b.example.com") && !below.covers_host("example.com"));
        assert!(!below.covers_host("evilexample.com"));
    }

    #[test]
    fn host_pattern_rejects_urls_top_level_domains_and_inner_wildcards() {
        for text in ["", "*", "*.com", "https://example.com", "example.com/x", "a.*.com", "a b"] {
            assert!(HostPattern::parse(text, false).is_err(), "{text}");
        }
        assert!(HostPattern::parse("*", true).is_err());
    }

    #[test]
    fn host_deny_rule_matches_percent_encoding_case_and_trailing_dot() {
        let rule = HostPattern::parse("Evil.example", true).unwrap();
        for host in [
            "evil.example",
            "EVIL.example",
            "evil.example.",
            "evil%2Eexample",
            "%65vil.example",
            "evil\u{3002}example",
            "a.EVIL.example.",
        ] {
            assert!(rule.touches_host(host), "{host}");
        }
        for host in ["evil.example.com", "notevil.example", "evil%2", "evil%zzexample", ""] {
            assert!(!rule.touches_host(host), "{host}");
        }
        let below = HostPattern::parse("*.example", true).unwrap();
        assert!(below.touches_host("a.Example") && !below.touches_host("example"));
        assert!(HostPattern::parse("*.example", false).is_err());
    }
}
