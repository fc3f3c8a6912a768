//! Images by name: what they are and how large, read from their first bytes. None is ever drawn.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gnoma_core::Image;

/// Characters of an image in which its size is searched for; divisible by four.
const MAX_HEAD_CHARS: usize = 65_536;
/// Parts of a JPEG before the one that tells its size.
const MAX_SEGMENTS: usize = 64;

/// Such as `[image 800×600 png]`.
pub(super) fn describe_image(image: &Image) -> String {
    let kind = image.mime.rsplit('/').next().unwrap_or_default();
    let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let head = image.base64.get(..MAX_HEAD_CHARS).unwrap_or(&image.base64);
    match STANDARD.decode(head).ok().and_then(|bytes| image_size(&bytes)) {
        Some((width, height)) => format!("[image {width}×{height} {kind}]"),
        None => format!("[image {kind}]"),
    }
}

fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => {
            Some((read_big_endian(bytes.get(16..20)?), read_big_endian(bytes.get(20..24)?)))
        }
        [b'G', b'I', b'F', ..] => {
            Some((read_little_endian(bytes.get(6..8)?), read_little_endian(bytes.get(8..10)?)))
        }
        [0xff, 0xd8, ..] => jpeg_size(bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp_size(bytes),
        _ => None,
    }
}

/// The size is in the frame's header, after parts of any number and length.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(2..)?;
    for _ in 0..MAX_SEGMENTS {
        let [0xff, kind, ..] = rest else { return None };
        let length = usize::try_from(read_big_endian(rest.get(2..4)?)).ok()?;
        let is_frame = matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some((read_big_endian(rest.get(7..9)?), read_big_endian(rest.get(5..7)?)));
        }
        rest = rest.get(2 + length..)?;
    }
    None
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((
            read_little_endian(bytes.get(26..28)?) & 0x3fff,
            read_little_endian(bytes.get(28..30)?) & 0x3fff,
        )),
        b"VP8X" => Some((
            read_little_endian(bytes.get(24..27)?) + 1,
            read_little_endian(bytes.get(27..30)?) + 1,
        )),
        b"VP8L" => {
            let bits = read_little_endian(bytes.get(21..25)?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        _ => None,
    }
}

fn read_big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn read_little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(mime: &str, bytes: &[u8]) -> String {
        describe_image(&Image::from_bytes(mime, bytes))
    }

    #[test]
    fn image_size_is_read_from_each_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x03\x20\0\0\x02\x58";
        assert_eq!(named("image/png", png), "[image 800×600 png]");
        assert_eq!(named("image/gif", b"GIF89a\x20\x03\x58\x02"), "[image 800×600 gif]");
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\x02\x58\x03\x20";
        assert_eq!(named("image/jpeg", jpeg), "[image 800×600 jpeg]");
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(named("image/webp", webp), "[image 800×600 webp]");
        assert_eq!(named("image/svg+xml", b"<svg"), "[image svgxml]");
    }
}
