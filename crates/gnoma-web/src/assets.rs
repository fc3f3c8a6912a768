//! The files of the page, compressed as they are sent.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asset {
    /// The path of the file.
    pub(crate) name: &'static str,
    /// The media type of the file.
    pub(crate) media_type: &'static str,
    /// The bytes of the file, compressed.
    pub(crate) bytes: &'static [u8],
}

/// The largest file of the page.
const MAX_FILE_BYTES: usize = 4 << 20;

/// The compression of the page's files, for browsers: the format of `zlib`.
pub(crate) const ENCODING: &str = "deflate";

impl Asset {
    /// Returns the bytes of the file as they are; none if what is built in cannot be read, which a test excludes.
    pub(crate) fn decompress_bytes(&self) -> Vec<u8> {
        decompress_to_vec_zlib_with_limit(self.bytes, MAX_FILE_BYTES).unwrap_or_default()
    }
}

static ASSETS: [Asset; FILES.len()] = build_table();

const fn build_table() -> [Asset; FILES.len()] {
    let mut all = [Asset { name: "", media_type: "", bytes: &[] }; FILES.len()];
    let mut place = 0;
    while place < FILES.len() {
        #[expect(clippy::indexing_slicing, reason = "it is checked when the program is built")]
        {
            let (name, bytes) = FILES[place];
            all[place] = Asset { name, media_type: media_type(name), bytes };
        }
        place += 1;
    }
    all
}

const fn media_type(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'.', b'h', b't', b'm', b'l'] => "text/html; charset=utf-8",
        [.., b'.', b'c', b's', b's'] => "text/css; charset=utf-8",
        [.., b'.', b'j', b's'] => "text/javascript; charset=utf-8",
        [.., b'.', b's', b'v', b'g'] => "image/svg+xml",
        [.., b'.', b'w', b'e', b'b', b'm', b'a', b'n', b'i', b'f', b'e', b's', b't'] => {
            "application/manifest+json"
        }
        _ => "text/plain; charset=utf-8",
    }
}

/// The file of a path.
pub(crate) fn find_asset(path: &str) -> Option<&'static Asset> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of the whole page, as it is sent.
    const MAX_PAGE_BYTES: usize = 120 << 10;

    #[test]
    fn web_page_assets_are_complete_and_below_the_size_limit() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < MAX_PAGE_BYTES, "{bytes}");
        for name in [
            "/",
            "/app.js",
            "/fold.js",
            "/style.css",
            "/icon.svg",
            "/sw.js",
            "/manifest.webmanifest",
        ] {
            assert!(find_asset(name).is_some(), "{name}");
        }
        assert!(ASSETS.iter().all(|asset| !asset.media_type.starts_with("text/plain")));
        assert!(ASSETS.iter().all(|asset| asset.decompress_bytes().len() >= asset.bytes.len() / 2));
        let html = find_asset("/").unwrap().decompress_bytes();
        assert!(html.starts_with(b"<!doctype html>") || html.starts_with(b"<!DOCTYPE html>"));
    }
}
