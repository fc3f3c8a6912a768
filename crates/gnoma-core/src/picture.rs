//! Images: reads an image's size and type from the first bytes of its file. Nothing is decoded or resized here.
//!
//! Formats: PNG (header chunk), GIF (logical screen), JPEG (first frame header), WebP (its three
//! bitstreams). Whatever is none of them, or cut off, has no known size.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::message::Image;

/// Most characters of a file that are looked at: what stands before a JPEG's frame is mostly shorter.
const MAX_CHARACTERS: usize = 128 << 10;
/// Characters of a file that tell its type.
const HEAD_CHARACTERS: usize = 32;
/// Most segments that are skipped before a JPEG's frame.
const MAX_SEGMENTS: usize = 64;

/// The size of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
}

impl Image {
    /// Returns the size of the image in pixels, if its file tells it.
    #[must_use]
    pub fn pixels(&self) -> Option<Pixels> {
        let end = self.base64.len().min(MAX_CHARACTERS) / 4 * 4;
        let bytes = STANDARD.decode(self.base64.get(..end)?).ok()?;
        png_size(&bytes)
            .or_else(|| gif_size(&bytes))
            .or_else(|| webp_size(&bytes))
            .or_else(|| jpeg_size(&bytes))
    }

    /// Returns the media type that the file's first bytes tell, whatever it is called: PNG (with its header chunk), JPEG,
    /// GIF or WebP, which are the types that models read. `None` for all else.
    #[must_use]
    pub fn detected_type(&self) -> Option<&'static str> {
        let end = self.base64.len().min(HEAD_CHARACTERS) / 4 * 4;
        let bytes = STANDARD.decode(self.base64.get(..end)?).ok()?;
        image_type(&bytes).filter(|kind| *kind != "image/png" || png_size(&bytes).is_some())
    }

    /// Reports whether the file's text is base64, and not empty.
    #[must_use]
    pub fn is_base64(&self) -> bool {
        let digits = self.base64.trim_end_matches('=');
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        let padding = self.base64.len() - digits.len();
        !digits.is_empty()
            && self.base64.len().is_multiple_of(4)
            && padding <= 2
            && digits.bytes().all(is_digit)
    }
}

/// Returns the media type of a picture that begins with these bytes, of those that models read; `None` for anything
/// else.
#[must_use]
pub fn image_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

fn read_big_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |sum, byte| (sum << 8) | u32::from(*byte)))
}

fn read_little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u32::from(*byte)))
}

fn png_size(bytes: &[u8]) -> Option<Pixels> {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n").then_some(())?;
    Some(Pixels { width: read_big_endian(bytes, 16, 4)?, height: read_big_endian(bytes, 20, 4)? })
}

fn gif_size(bytes: &[u8]) -> Option<Pixels> {
    bytes.starts_with(b"GIF8").then_some(())?;
    Some(Pixels {
        width: read_little_endian(bytes, 6, 2)?,
        height: read_little_endian(bytes, 8, 2)?,
    })
}

fn webp_size(bytes: &[u8]) -> Option<Pixels> {
    (bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP").then_some(())?;
    match bytes.get(12..16)? {
        b"VP8X" => Some(Pixels {
            width: read_little_endian(bytes, 24, 3)?.saturating_add(1),
            height: read_little_endian(bytes, 27, 3)?.saturating_add(1),
        }),
        b"VP8 " => Some(Pixels {
            width: read_little_endian(bytes, 26, 2)? & 0x3fff,
            height: read_little_endian(bytes, 28, 2)? & 0x3fff,
        }),
        b"VP8L" => {
            let packed = read_little_endian(bytes, 21, 4)?;
            Some(Pixels { width: (packed & 0x3fff) + 1, height: ((packed >> 14) & 0x3fff) + 1 })
        }
        _ => None,
    }
}

fn jpeg_size(bytes: &[u8]) -> Option<Pixels> {
    bytes.starts_with(&[0xff, 0xd8]).then_some(())?;
    let mut at = 2_usize;
    for _ in 0..MAX_SEGMENTS {
        let marker = read_big_endian(bytes, at, 2)?;
        let is_frame =
            matches!(marker, 0xffc0..=0xffcf) && !matches!(marker, 0xffc4 | 0xffc8 | 0xffcc);
        if is_frame {
            let (height, width) =
                (read_big_endian(bytes, at + 5, 2)?, read_big_endian(bytes, at + 7, 2)?);
            return Some(Pixels { width, height });
        }
        at = at
            .checked_add(2)?
            .checked_add(usize::try_from(read_big_endian(bytes, at + 2, 2)?).ok()?)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pixels(bytes: &[u8]) -> Option<(u32, u32)> {
        let pixels = Image::from_bytes("image/png", bytes).pixels()?;
        Some((pixels.width, pixels.height))
    }

    #[test]
    fn image_size_in_pixels_is_read_from_png_gif_jpeg_and_webp() {
        let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[0, 0, 2, 0, 0, 0, 1, 4]].concat();
        assert_eq!(pixels(&png), Some((512, 260)));
        assert_eq!(pixels(b"GIF89a\x40\x01\xf0\x00\0\0"), Some((320, 240)));
        let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 17, 8, 1, 0, 2, 0, 3];
        assert_eq!(pixels(&jpeg), Some((512, 256)));
        let webp =
            [b"RIFF\0\0\0\0WEBPVP8X".as_slice(), &[10, 0, 0, 0, 0, 0, 0, 0], &[99, 0, 0, 49, 0, 0]];
        assert_eq!(pixels(&webp.concat()), Some((100, 50)));
        assert_eq!(pixels(b"no picture at all"), None);
        assert_eq!(pixels(&png[..18]), None);
    }

    #[test]
    fn image_mime_type_is_detected_from_the_bytes() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01"[..], Some("image/png")),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", None),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Some("image/jpeg")),
            (b"GIF89a\x01\0\x01\0", Some("image/gif")),
            (b"RIFF\x24\xfe\x01\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x24\xfe\x01\0WAVEfmt ", None),
            (b"<svg></svg>", None),
            (b"", None),
        ] {
            let image = Image::from_bytes("", bytes);
            assert_eq!(image.detected_type(), expected, "{bytes:?}");
            assert_eq!(image.is_base64(), !bytes.is_empty(), "{bytes:?}");
        }
        for text in ["!!", "AAAA=", "A===", "a b="] {
            let image = Image { mime: "image/png".into(), base64: text.into() };
            assert!(!image.is_base64() && image.detected_type().is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn image_size_of_any_bytes_never_panics(
            start in prop::sample::select(vec![
                &b"\x89PNG\r\n\x1a\n"[..], b"GIF8", b"RIFF\0\0\0\0WEBPVP8L", b"\xff\xd8\xff\xe1", b"",
            ]),
            rest in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let _size = pixels(&[start, &rest].concat());
        }
    }
}
