//! The files of the page, compressed as they are sent.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asset {
    /// Its path.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) media_type: &'static str,
    /// Its bytes, compressed.
    pub(crate) bytes: &'static [u8],
}

/// How its files are compressed, for browsers: the format of `zlib`.
pub(crate) const ENCODING: &str = "deflate";

static ASSETS: [Asset; FILES.len()] = table();

const fn table() -> [Asset; FILES.len()] {
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
        _ => "text/plain; charset=utf-8",
    }
}

/// The file of a path.
pub(crate) fn asset(path: &str) -> Option<&'static Asset> {
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
    const MAX_PAGE_BYTES: usize = 100 << 10;

    #[test]
    fn the_page_is_small_and_whole() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < MAX_PAGE_BYTES, "{bytes}");
        for name in ["/", "/app.js", "/fold.js", "/style.css", "/icon.svg"] {
            assert!(asset(name).is_some(), "{name}");
        }
        assert!(ASSETS.iter().all(|asset| !asset.media_type.starts_with("text/plain")));
    }
}
