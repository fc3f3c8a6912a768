//! The name at which a tunnel leads to the page.

use super::error::ArgumentError;

/// Parses the name of a tunnel: a host name without scheme and path, or nothing.
pub(super) fn tunnel_name(text: &str) -> Result<String, ArgumentError> {
    let name = text.trim_start_matches("https://").trim_end_matches('/');
    // Browsers leave the usual port of HTTPS out.
    let name = name.strip_suffix(":443").unwrap_or(name);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b':');
    if name.len() <= 253 && name.bytes().all(fits) {
        return Ok(name.to_ascii_lowercase());
    }
    let (value, example) = (text.to_owned(), "desk.tail1234.ts.net");
    Err(ArgumentError::Malformed { value, expected: "a host name", example })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_a_host_without_scheme_and_path() {
        let name = Ok("desk.tail1.ts.net".to_owned());
        assert_eq!(tunnel_name("https://Desk.tail1.ts.net/"), name);
        assert_eq!(tunnel_name("desk.tail1.ts.net"), name);
        assert_eq!(tunnel_name("desk.tail1.ts.net:443"), name);
        assert_eq!(tunnel_name("a.b:8443"), Ok("a.b:8443".to_owned()));
        assert_eq!(tunnel_name(""), Ok(String::new()), "how to make one is asked");
        for wrong in ["http://a.b", "a b", "a/b", "a\r\nb", "*"] {
            assert!(tunnel_name(wrong).is_err(), "{wrong}");
        }
    }
}
