//! Detects binary files, images and text by their first bytes.

use gnoma_core::picture::image_type;

/// The kind of content that the first bytes of a file show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    /// Lines of text, in UTF-8 or something near it.
    Text,
    /// A picture of this media type.
    Image(&'static str),
    /// Text in UTF-16, which reads as half zeros.
    Utf16,
    /// Text in UTF-32, which is only named.
    Utf32,
    /// Content of any other kind.
    Binary,
}

impl ContentKind {
    /// Reports whether the content is text, in any encoding.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Utf16)
    }
}

/// The sort of a file that begins with `head`.
pub(super) fn sort_of(head: &[u8]) -> ContentKind {
    if let Some(mime) = image_type(head) {
        ContentKind::Image(mime)
    } else if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
        ContentKind::Utf32
    } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        ContentKind::Utf16
    } else if head.contains(&0) {
        ContentKind::Binary
    } else {
        ContentKind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_kind_is_detected_from_magic_bytes() {
        let cases: [(&[u8], ContentKind); 10] = [
            (b"\x89PNG\r\n\x1a\n\0\0", ContentKind::Image("image/png")),
            (b"\xff\xd8\xff\xe0", ContentKind::Image("image/jpeg")),
            (b"GIF89a", ContentKind::Image("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", ContentKind::Image("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", ContentKind::Binary),
            (b"\xff\xfeh\0i\0", ContentKind::Utf16),
            (b"\xff\xfe\0\0h\0\0\0", ContentKind::Utf32),
            (b"\0\0\xfe\xff\0\0\0h", ContentKind::Utf32),
            (b"caf\xe9\n", ContentKind::Text),
            (b"", ContentKind::Text),
        ];
        for (head, sort) in cases {
            assert_eq!(sort_of(head), sort, "{head:?}");
        }
    }
}
