//! `$'…'`: text with the escapes of C.

use super::cursor::{ParseResult, Parser};

impl Parser<'_> {
    /// The decoded text; `None` when its bytes are not text or end early at a zero.
    pub(super) fn ansi_quoted(&mut self) -> ParseResult<Option<String>> {
        let start = self.at;
        self.eat("$'");
        let from = self.at;
        loop {
            match self.bump_raw() {
                None => return Err(self.unterminated_error(start, "`$'`")),
                Some('\\') => {
                    self.bump_raw();
                }
                Some('\'') => break,
                Some(_) => {}
            }
        }
        let written = self.text.get(from..self.at - 1).unwrap_or_default();
        Ok(decode_ansi(written))
    }
}

fn decode_ansi(written: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = written;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        bytes.extend_from_slice(plain.as_bytes());
        rest = decode_escape(escape.get(1..)?, &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then_some(text)
}

/// Decodes what follows a backslash and gives back what follows that.
fn decode_escape<'a>(escape: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let kind = escape.chars().next()?;
    let rest = escape.get(kind.len_utf8()..)?;
    let byte = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'e' | 'E' => 0x1b,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' | '\'' | '"' | '?' => u8::try_from(kind).ok()?,
        '0'..='7' => {
            let (value, rest) = parse_number(escape, 8, 3)?;
            bytes.push(u8::try_from(value & 0xff).ok()?);
            return Some(rest);
        }
        'x' => {
            let (value, rest) = parse_number(rest, 16, 2)?;
            bytes.push(u8::try_from(value).ok()?);
            return Some(rest);
        }
        'u' | 'U' => {
            let (value, rest) = parse_number(rest, 16, if kind == 'u' { 4 } else { 8 })?;
            let found = char::from_u32(value)?;
            bytes.extend_from_slice(found.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        // A control character; its rules for quoted characters are not worth knowing.
        'c' => return None,
        _ => {
            bytes.push(b'\\');
            bytes.extend_from_slice(kind.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
    };
    bytes.push(byte);
    Some(rest)
}

fn parse_number(text: &str, radix: u32, most_digits: usize) -> Option<(u32, &str)> {
    let length =
        text.bytes().take(most_digits).take_while(|byte| char::from(*byte).is_digit(radix));
    let (digits, rest) = text.split_at(length.count());
    Some((u32::from_str_radix(digits, radix).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::decode_ansi;

    #[test]
    fn ansi_c_quoting_decodes_escapes_like_bash() {
        let decoded = decode_ansi(r#"a\n\t\x41\101\u00e9\U1F600\'\"\q\\"#);
        assert_eq!(decoded.as_deref(), Some("a\n\tAAé😀'\"\\q\\"));
    }

    #[test]
    fn ansi_c_quoting_of_invalid_utf8_or_nul_is_unknown() {
        for written in [r"\xff", r"a\0b", r"\x00", r"\cA", r"\xzz", r"\ud800"] {
            assert_eq!(decode_ansi(written), None, "{written}");
        }
    }
}
