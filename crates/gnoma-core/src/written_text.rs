//! Texts that people write with an editor of theirs: instructions, skills, definitions of agents.

use std::string::FromUtf8Error;

/// Decodes a text in UTF-8, or in UTF-16 with a byte order mark, as Windows PowerShell writes it. The mark is left out.
/// Where every line ends with a lone `\r`, as on old Macs, it becomes `\n`.
///
/// # Errors
/// It is in neither; the error has the bytes.
pub fn decode(bytes: Vec<u8>) -> Result<String, FromUtf8Error> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] => decode_utf16(units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => decode_utf16(units, u16::from_be_bytes),
        _ => String::from_utf8(bytes)?,
    };
    Ok(with_line_feeds(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|pair| unit(pair.try_into().unwrap_or_default()));
    let letters = char::decode_utf16(units);
    letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn with_line_feeds(text: String) -> String {
    let is_old = text.contains('\r') && !text.contains('\n');
    if is_old { text.replace('\r', "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_write_is_decoded() {
        for (bytes, text) in [
            (&b"one\ntwo"[..], "one\ntwo"),
            (b"\xef\xbb\xbfone\r\ntwo", "one\r\ntwo"),
            (b"one\rtwo\r", "one\ntwo\n"),
            (b"a\rb\n", "a\rb\n"),
            (b"\xff\xfeh\0\xe9\0", "h\u{e9}"),
            (b"\xfe\xff\0h\0\xe9", "h\u{e9}"),
            (b"\xff\xfea\0\r\0b\0", "a\nb"),
            // Cut within a character.
            (b"\xff\xfea\0\x3d\xd8b", "a\u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes.to_vec()).unwrap(), text, "{bytes:?}");
        }
        assert!(decode(b"caf\xe9".to_vec()).is_err());
    }
}
