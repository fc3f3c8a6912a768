//! Proxy variables (`HTTPS_PROXY`, `NO_PROXY`): which of them are unusable.
//!
//! The HTTP library reads them itself and ignores what it cannot read, so that requests go out without a proxy.

use hyper_util::client::proxy::matcher::Matcher;

/// The variables that name a proxy.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// Most characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 80;

/// Describes the proxy variables whose values are no address of a proxy, a sentence each. `read` returns the value of a
/// variable. No password is in a sentence.
pub fn unusable_proxies<'a>(read: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let set = VARIABLES.iter().filter_map(|name| Some((name, read(name)?.trim())));
    let unusable = set.filter(|(_, value)| !value.is_empty() && !is_proxy(value));
    let describe = |(name, value): (&&str, &str)| {
        let shown = without_credentials(value);
        format!(
            "{name} is `{shown}`, which is not an address such as http://proxy:3128; it is not used"
        )
    };
    unusable.map(describe).collect()
}

/// Reports whether the HTTP library can use `value` as a proxy.
fn is_proxy(value: &str) -> bool {
    let matcher = Matcher::builder().all(value.to_owned()).build();
    let Ok(anywhere) = "http://example.com/".parse() else { return true };
    matcher.intercept(&anywhere).is_some()
}

/// A value in one line, with `…` for a name and a password before an `@`.
fn without_credentials(value: &str) -> String {
    let shown = match value.rsplit_once('@') {
        Some((before, host)) => {
            let scheme = before.find("://").and_then(|at| before.get(..at + 3)).unwrap_or_default();
            format!("{scheme}…@{host}")
        }
        None => value.to_owned(),
    };
    shown.escape_debug().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_variables_that_are_no_address_are_told_without_passwords() {
        let told =
            |value: &'static str| unusable_proxies(|name| (name == "HTTP_PROXY").then_some(value));
        assert_eq!(
            told("foo bar"),
            [
                "HTTP_PROXY is `foo bar`, which is not an address such as http://proxy:3128; it is not used"
            ]
        );
        for bad in ["http:/127.0.0.1:9", "ftp://127.0.0.1:9", "http://"] {
            assert_eq!(told(bad).len(), 1, "{bad}");
        }
        let secret = told("ftp://me:hunter2@proxy:1");
        assert!(secret[0].contains("`ftp://…@proxy:1`") && !secret[0].contains("hunter2"));
        for good in ["", "http://proxy:3128", "proxy:3128", "socks5://me:p@proxy:1", "127.0.0.1:9"]
        {
            assert_eq!(told(good), [""; 0], "{good}");
        }
    }
}
