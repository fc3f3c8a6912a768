//! Texts that people write with an editor of theirs, and that their scripts print: instructions, skills, answers of hooks.

use std::string::FromUtf8Error;

/// Decodes a text in UTF-8 or UTF-16, which Windows PowerShell writes. A byte order mark is left out; without one, UTF-16
/// is known by its first two characters if these are ASCII. Where every line ends with a lone `\r`, as on old Macs, it
/// becomes `\n`.
///
/// # Errors
/// It is in neither; the error has the bytes.
pub fn decode(bytes: Vec<u8>) -> Result<String, FromUtf8Error> {
    Ok(normalize(match decode_utf16(&bytes) {
        Some(text) => text,
        None => String::from_utf8(bytes)?,
    }))
}

/// Decodes a text as [`decode`] does, with U+FFFD in place of bytes that are in neither encoding.
#[must_use]
pub fn decode_lossy(bytes: &[u8]) -> String {
    let text = decode_utf16(bytes);
    normalize(text.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned()))
}

/// Decodes UTF-16; `None` if the bytes do not begin as UTF-16 does.
fn decode_utf16(bytes: &[u8]) -> Option<String> {
    let (bytes, unit): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xff, 0xfe, units @ ..] => (units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] => (units, u16::from_be_bytes),
        [1..=0x7f, 0, 1..=0x7f, 0, ..] => (bytes, u16::from_le_bytes),
        [0, 1..=0x7f, 0, 1..=0x7f, ..] => (bytes, u16::from_be_bytes),
        _ => return None,
    };
    let units = bytes.chunks_exact(2).map(|pair| unit(pair.try_into().unwrap_or_default()));
    let letters = char::decode_utf16(units);
    Some(letters.map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

fn normalize(text: String) -> String {
    with_line_feeds(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn with_line_feeds(text: String) -> String {
    let is_old = text.contains('\r') && !text.contains('\n');
    if is_old { text.replace('\r', "\n") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_with_bom_utf16_or_old_line_ends_are_decoded() {
        for (bytes, text) in [
            (&b"one\ntwo"[..], "one\ntwo"),
            (b"\xef\xbb\xbfone\r\ntwo", "one\r\ntwo"),
            (b"one\rtwo\r", "one\ntwo\n"),
            (b"a\rb\n", "a\rb\n"),
            (b"\xff\xfeh\0\xe9\0", "h\u{e9}"),
            (b"\xfe\xff\0h\0\xe9", "h\u{e9}"),
            (b"\xff\xfea\0\r\0b\0", "a\nb"),
            // Without a mark.
            (b"h\0i\0\xe9\0", "hi\u{e9}"),
            (b"\0h\0i\0\xe9", "hi\u{e9}"),
            (b"a\0b", "a\0b"),
            // Cut within a character.
            (b"\xff\xfea\0\x3d\xd8b", "a\u{fffd}"),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes.to_vec()).unwrap(), text, "{bytes:?}");
            assert_eq!(decode_lossy(bytes), text, "{bytes:?}");
        }
        assert!(decode(b"caf\xe9".to_vec()).is_err());
        assert_eq!(decode_lossy(b"\xef\xbb\xbfcaf\xe9"), "caf\u{fffd}");
    }
}
