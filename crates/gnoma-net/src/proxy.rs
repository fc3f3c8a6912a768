//! Proxy variables (`HTTPS_PROXY`, `NO_PROXY`): which of them are unusable.
//!
//! The HTTP library reads them itself and ignores what it cannot read, so that requests go out without a proxy.

use hyper_util::client::proxy::matcher::Matcher;

/// The variables that name a proxy.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The variables that name hosts which need no proxy.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Most characters of a value that are shown.
const MAX_SHOWN_CHARS: usize = 80;

/// Describes what has no effect in the proxy variables, a sentence each: values that are no address of a proxy, and
/// exceptions with a port. `read` returns the value of a variable. No password is in a sentence.
pub fn unusable_proxies<'a>(read: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let set = VARIABLES.iter().filter_map(|name| Some((name, read(name)?.trim())));
    let unusable = set.filter(|(_, value)| !value.is_empty() && !is_proxy(value));
    let describe = |(name, value): (&&str, &str)| {
        let shown = without_credentials(value);
        format!(
            "{name} is `{shown}`, which is not an address such as http://proxy:3128; it is not used"
        )
    };
    let has_proxy = VARIABLES.iter().any(|name| read(name).is_some_and(|value| !value.is_empty()));
    let exceptions = EXCEPTIONS.iter().filter_map(|name| Some((name, read(name)?)));
    let exceptions = exceptions.filter(|_| has_proxy);
    let ported = exceptions.flat_map(|(name, hosts)| {
        let hosts = hosts.split(',').map(str::trim).filter(|host| has_port(host));
        hosts.map(move |host| {
            let shown = without_credentials(host);
            format!("{name} has `{shown}`, which exempts no host; write it without its port")
        })
    });
    unusable.map(describe).chain(ported).collect()
}

/// Reports whether an exception ends with a port, which the HTTP library compares with names of hosts.
fn has_port(exception: &str) -> bool {
    exception.rsplit_once(':').is_some_and(|(host, port)| {
        let is_whole_host = !host.contains(':') || host.ends_with(']');
        is_whole_host && !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())
    })
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
    fn invalid_proxy_variable_warns_without_showing_its_password() {
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

    #[test]
    fn no_proxy_entry_with_a_port_warns_if_a_proxy_is_set() {
        let told = |proxy: &'static str| {
            unusable_proxies(|name| match name {
                "HTTPS_PROXY" => Some(proxy),
                "NO_PROXY" => Some("a.example, b.example:8080,::1,[::1]:80,10.0.0.0/8"),
                _ => None,
            })
        };
        let one = |host| {
            format!("NO_PROXY has `{host}`, which exempts no host; write it without its port")
        };
        assert_eq!(told("http://proxy:3128"), [one("b.example:8080"), one("[::1]:80")]);
        assert_eq!(told(""), [""; 0]);
    }
}
