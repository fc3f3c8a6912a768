//! Images that people add to a message.

use gnoma_core::Image;

/// Largest image that is sent along.
pub(super) const MAX_IMAGE_BYTES: usize = 10 << 20;

/// An image, known by its first bytes.
pub(super) fn parse_image(bytes: &[u8]) -> Option<Image> {
    let is_webp = bytes.get(8..12) == Some(b"WEBP");
    let is_png = bytes.get(12..16) == Some(b"IHDR");
    let mime = match bytes {
        [0x89, b'P', b'N', b'G', ..] if is_png => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', ..] if is_webp => "image/webp",
        _ => return None,
    };
    Some(Image::from_bytes(mime, bytes))
}
