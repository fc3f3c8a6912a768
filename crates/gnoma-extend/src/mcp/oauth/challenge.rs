//! Parses the `WWW-Authenticate` header of an MCP server that requires authorization.

/// A parameter of a challenge.
pub(super) fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((before, after)) = rest.split_once('=') {
        let key = before.rsplit([' ', ',', '\t']).find(|part| !part.is_empty()).unwrap_or_default();
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted_text(quoted),
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                let (value, next) = after.split_at_checked(end).unwrap_or((after, ""));
                (value.to_owned(), next)
            }
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = next;
    }
    None
}

/// The text up to the closing quote, and what is behind that.
fn quoted_text(quoted: &str) -> (String, &str) {
    let (mut text, mut is_escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (text, quoted.get(at + 1..).unwrap_or_default()),
            other => {
                text.push(other);
                is_escaped = false;
            }
        }
    }
    (text, "")
}

/// The scopes that a challenge wants.
pub(super) fn requested_scopes(challenge: &str) -> Vec<String> {
    let scope = challenge_parameter(challenge, "scope").unwrap_or_default();
    scope.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oauth_www_authenticate_parameters_are_parsed_quoted_or_not() {
        let challenge = r#"Bearer realm="a=b, c", error=invalid_token, Scope="files:read files:write",resource_metadata="https://a.example/x?y=1""#;
        assert_eq!(challenge_parameter(challenge, "error").as_deref(), Some("invalid_token"));
        assert_eq!(requested_scopes(challenge), ["files:read", "files:write"]);
        let metadata = challenge_parameter(challenge, "resource_metadata");
        assert_eq!(metadata.as_deref(), Some("https://a.example/x?y=1"));
        assert_eq!(challenge_parameter(challenge, "c"), None);
        assert_eq!(challenge_parameter(r#"Bearer a="x\"y", b="z"#, "a").as_deref(), Some("x\"y"));
        assert_eq!(challenge_parameter("Bearer", "scope"), None);
    }
}
