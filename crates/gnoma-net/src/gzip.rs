//! Answers that come compressed though nobody asked for it, as some proxies send them. Only gzip: what else
//! there is, nobody sends unasked.

use bytes::{Buf as _, Bytes};
use miniz_oxide::{
    DataFormat, MZError, MZFlush, MZStatus,
    inflate::stream::{InflateState, inflate},
};

/// Most bytes of a head; its texts have no limit of their own.
const MAX_HEAD_BYTES: usize = 70_000;
/// Most that is unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;
/// What stands after the content: its checksum and its length.
const TRAILER_BYTES: usize = 8;
/// How a stream begins: gzip, with deflate.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Flags of the head (RFC 1952): what stands before the content.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// The bytes are no gzip of one member, or damaged. Its checksum is not compared.
#[derive(Debug, PartialEq, Eq)]
pub struct Damaged;

/// Unpacks a stream as it comes.
#[derive(Default)]
pub(crate) struct Gunzip {
    /// What has come of the head.
    head: Vec<u8>,
    /// None before the head is whole.
    state: Option<Box<InflateState>>,
    /// What has come and is not unpacked yet.
    unread: Bytes,
    /// Where it is unpacked to.
    piece: Vec<u8>,
    /// What comes after the content is its checksum.
    is_over: bool,
    /// How much of that has come.
    trailer_bytes: usize,
}

impl Gunzip {
    /// The next bytes of the stream, once [`unpack`](Self::unpack) has no more.
    pub(crate) fn put(&mut self, bytes: Bytes) {
        self.unread = bytes;
    }

    /// The next piece of what has come, which is not empty; `None` where more has to come. Few bytes can hold a
    /// thousand times as many: whoever takes them sees each piece, and can stop.
    pub(crate) fn unpack(&mut self) -> Result<Option<Bytes>, Damaged> {
        self.read_head()?;
        let Some(state) = &mut self.state else { return Ok(None) };
        self.piece.resize(PIECE_BYTES, 0);
        while !self.is_over {
            let step = inflate(state, &self.unread, &mut self.piece, MZFlush::None);
            self.unread.advance(step.bytes_consumed);
            match step.status {
                Ok(status) => self.is_over = status == MZStatus::StreamEnd,
                // It waits for more.
                Err(MZError::Buf) => {}
                Err(_) => return Err(Damaged),
            }
            if step.bytes_written > 0 {
                let piece = self.piece.get(..step.bytes_written).unwrap_or_default();
                return Ok(Some(Bytes::copy_from_slice(piece)));
            }
            if !self.is_over && step.bytes_consumed == 0 {
                return if self.unread.is_empty() { Ok(None) } else { Err(Damaged) };
            }
        }
        self.trailer_bytes = self.trailer_bytes.saturating_add(self.unread.len());
        self.unread.clear();
        if self.trailer_bytes > TRAILER_BYTES { Err(Damaged) } else { Ok(None) }
    }

    /// Whether the stream may end here: its content is over, or it never began.
    pub(crate) fn may_end(&self) -> bool {
        self.is_over || (self.state.is_none() && self.head.is_empty())
    }

    fn read_head(&mut self) -> Result<(), Damaged> {
        if self.state.is_some() {
            return Ok(());
        }
        self.head.extend_from_slice(&self.unread);
        self.unread.clear();
        if let Some(end) = gzip_head(&self.head)? {
            self.state = Some(InflateState::new_boxed(DataFormat::Raw));
            self.unread = Bytes::from(std::mem::take(&mut self.head));
            self.unread.advance(end);
        }
        Ok(())
    }
}

/// Bytes of the head of a gzip file (RFC 1952), after which its deflate stream begins; `None` where more of the
/// head has to come.
///
/// # Errors
/// This is no gzip with deflate, or its head is too long.
pub fn gzip_head(bytes: &[u8]) -> Result<Option<usize>, Damaged> {
    let is_begun = bytes.iter().zip(MAGIC).all(|(is, must)| *is == must);
    if !is_begun {
        return Err(Damaged);
    }
    let length = || -> Option<usize> {
        let flags = *bytes.get(3)?;
        let mut at = 10;
        if flags & HAS_EXTRA != 0 {
            at += 2 + usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        }
        for text in [HAS_NAME, HAS_COMMENT] {
            if flags & text != 0 {
                at += 1 + bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
            }
        }
        at += if flags & HAS_CRC != 0 { 2 } else { 0 };
        (bytes.len() >= at).then_some(at)
    };
    match length() {
        None if bytes.len() > MAX_HEAD_BYTES => Err(Damaged),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec;

    use super::*;

    fn packed(text: &[u8], flags: u8, more: &[u8]) -> Vec<u8> {
        let head = [&MAGIC[..], &[flags, 0, 0, 0, 0, 0, 3], more].concat();
        [head, compress_to_vec(text, 6), vec![0; 8]].concat()
    }

    fn fed(gunzip: &mut Gunzip, bytes: &[u8]) -> Result<Vec<u8>, Damaged> {
        let mut all = Vec::new();
        gunzip.put(Bytes::copy_from_slice(bytes));
        while let Some(piece) = gunzip.unpack()? {
            assert!((1..=PIECE_BYTES).contains(&piece.len()));
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    #[test]
    fn a_stream_is_unpacked_in_pieces_of_any_size() {
        let text: Vec<u8> =
            (0..40_000_u32).flat_map(|number| format!("{number} ").into_bytes()).collect();
        let named = packed(&text, HAS_NAME | HAS_EXTRA, b"\x02\0xyname\0");
        for bytes in [packed(&text, 0, b""), named] {
            for size in [1, 7, 1_000, bytes.len()] {
                let mut gunzip = Gunzip::default();
                let mut all = Vec::new();
                for chunk in bytes.chunks(size) {
                    all.extend(fed(&mut gunzip, chunk).unwrap());
                }
                assert!(all == text && gunzip.may_end(), "{size}");
            }
        }
    }

    #[test]
    fn what_has_come_is_there_before_the_rest_comes() {
        let bytes = packed(&b"data: {}\n\n".repeat(9_000), 0, b"");
        let mut gunzip = Gunzip::default();
        assert!(!fed(&mut gunzip, &bytes[..bytes.len() / 2]).unwrap().is_empty());
        assert!(!gunzip.may_end());
    }

    #[test]
    fn what_comes_after_the_stream_is_refused() {
        let mut gunzip = Gunzip::default();
        assert!(gunzip.may_end(), "an answer without a body");
        assert_eq!(fed(&mut gunzip, &packed(b"text", 0, b"")), Ok(b"text".to_vec()));
        assert_eq!(fed(&mut gunzip, b""), Ok(Vec::new()));
        assert_eq!(fed(&mut gunzip, b"x"), Err(Damaged));
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        assert_eq!(fed(&mut Gunzip::default(), b"data: {}\n\n"), Err(Damaged));
        assert_eq!(
            fed(&mut Gunzip::default(), &packed(b"x", HAS_NAME, &vec![b'n'; 80_000])),
            Err(Damaged)
        );
        let mut broken = packed(&b"some text that is long enough".repeat(50), 0, b"");
        broken[12..30].fill(0xff);
        assert_eq!(fed(&mut Gunzip::default(), &broken), Err(Damaged));
    }
}
