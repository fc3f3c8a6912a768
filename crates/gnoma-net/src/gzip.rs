//! Decompresses answers that come gzipped unasked, as some proxies send them. Only gzip: what else there is, nobody
//! sends unasked.

use bytes::{Buf as _, Bytes};
use crc32fast::Hasher;
use miniz_oxide::{
    DataFormat, MZError, MZFlush, MZStatus,
    inflate::stream::{InflateState, inflate},
};

/// Most bytes of a head; its texts have no limit of their own.
const MAX_HEAD_BYTES: usize = 70_000;
/// Most that is unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;
/// The length of the trailer after the content, which holds its checksum and its length, in bytes.
const TRAILER_BYTES: usize = 8;
/// The bytes with which a stream begins: gzip, with deflate.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Flags of the head (RFC 1952): what stands before the content.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// The bytes are no gzip, or damaged.
#[derive(Debug, PartialEq, Eq)]
pub struct DamagedGzip;

/// Unpacks a stream as it comes: one member, or several one after the other.
#[derive(Default)]
pub(crate) struct Gunzip {
    /// The bytes of the next member's head that have arrived.
    head: Vec<u8>,
    /// The member that is being unpacked; `None` between members.
    member: Option<Member>,
    /// The bytes that have arrived and are not unpacked yet.
    unread: Bytes,
    /// The buffer that data is unpacked to.
    piece: Vec<u8>,
}

/// A member whose head is known.
struct Member {
    state: Box<InflateState>,
    /// Checksum and length of what is unpacked.
    sum: Hasher,
    bytes: u32,
    /// `true` if the content of the member is over, so that the next bytes are its trailer.
    is_over: bool,
    trailer: Vec<u8>,
}

impl Member {
    fn new() -> Self {
        Self {
            state: InflateState::new_boxed(DataFormat::Raw),
            sum: Hasher::new(),
            bytes: 0,
            is_over: false,
            trailer: Vec::new(),
        }
    }

    /// The next piece of the content, which may be empty; `None` where more has to come.
    fn unpack(
        &mut self,
        unread: &mut Bytes,
        piece: &mut [u8],
    ) -> Result<Option<Bytes>, DamagedGzip> {
        let step = inflate(&mut self.state, unread, piece, MZFlush::None);
        unread.advance(step.bytes_consumed);
        match step.status {
            Ok(status) => self.is_over = status == MZStatus::StreamEnd,
            // It waits for more.
            Err(MZError::Buf) => {}
            Err(_) => return Err(DamagedGzip),
        }
        let unpacked = piece.get(..step.bytes_written).unwrap_or_default();
        self.sum.update(unpacked);
        // The trailer has the length's last 32 bits.
        let bytes = u32::try_from(unpacked.len()).map_err(|_| DamagedGzip)?;
        self.bytes = self.bytes.wrapping_add(bytes);
        if !self.is_over && step.bytes_consumed == 0 && unpacked.is_empty() {
            return if unread.is_empty() { Ok(None) } else { Err(DamagedGzip) };
        }
        Ok(Some(Bytes::copy_from_slice(unpacked)))
    }

    /// Takes of what has come what belongs to the trailer. Says whether that is whole now.
    fn read_trailer(&mut self, unread: &mut Bytes) -> Result<bool, DamagedGzip> {
        let missing = TRAILER_BYTES.saturating_sub(self.trailer.len()).min(unread.len());
        self.trailer.extend_from_slice(&unread.split_to(missing));
        if self.trailer.len() < TRAILER_BYTES {
            return Ok(false);
        }
        let sum = self.sum.clone().finalize().to_le_bytes();
        let is_right = self.trailer == [sum, self.bytes.to_le_bytes()].concat();
        if is_right { Ok(true) } else { Err(DamagedGzip) }
    }
}

impl Gunzip {
    /// The next bytes of the stream, once [`unpack`](Self::unpack) has no more.
    pub(crate) fn feed_bytes(&mut self, bytes: Bytes) {
        self.unread = bytes;
    }

    /// The next piece of what has come, which is not empty; `None` where more has to come. Few bytes can hold a
    /// thousand times as many: whoever takes them sees each piece, and can stop.
    pub(crate) fn unpack(&mut self) -> Result<Option<Bytes>, DamagedGzip> {
        self.piece.resize(PIECE_BYTES, 0);
        loop {
            self.read_head()?;
            let Some(member) = &mut self.member else { return Ok(None) };
            while !member.is_over {
                match member.unpack(&mut self.unread, &mut self.piece)? {
                    None => return Ok(None),
                    Some(piece) if piece.is_empty() => {}
                    Some(piece) => return Ok(Some(piece)),
                }
            }
            if !member.read_trailer(&mut self.unread)? {
                return Ok(None);
            }
            self.member = None;
        }
    }

    /// Reports whether the stream may end here: between members, or before the first.
    pub(crate) fn may_end(&self) -> bool {
        self.member.is_none() && self.head.is_empty()
    }

    fn read_head(&mut self) -> Result<(), DamagedGzip> {
        if self.member.is_some() {
            return Ok(());
        }
        self.head.extend_from_slice(&self.unread);
        self.unread.clear();
        if let Some(end) = gzip_head(&self.head)? {
            self.member = Some(Member::new());
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
pub fn gzip_head(bytes: &[u8]) -> Result<Option<usize>, DamagedGzip> {
    let is_begun = bytes.iter().zip(MAGIC).all(|(is, must)| *is == must);
    if !is_begun {
        return Err(DamagedGzip);
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
        None if bytes.len() > MAX_HEAD_BYTES => Err(DamagedGzip),
        length => Ok(length),
    }
}

#[cfg(test)]
mod tests {
    use miniz_oxide::deflate::compress_to_vec;

    use super::*;

    fn packed(text: &[u8], flags: u8, more: &[u8]) -> Vec<u8> {
        let head = [&MAGIC[..], &[flags, 0, 0, 0, 0, 0, 3], more].concat();
        let (sum, bytes) = (crc32fast::hash(text), u32::try_from(text.len()).unwrap());
        let trailer = [sum.to_le_bytes(), bytes.to_le_bytes()].concat();
        [head, compress_to_vec(text, 6), trailer].concat()
    }

    fn fed(gunzip: &mut Gunzip, bytes: &[u8]) -> Result<Vec<u8>, DamagedGzip> {
        let mut all = Vec::new();
        gunzip.feed_bytes(Bytes::copy_from_slice(bytes));
        while let Some(piece) = gunzip.unpack()? {
            assert!((1..=PIECE_BYTES).contains(&piece.len()));
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    #[test]
    fn gzip_stream_decodes_the_same_for_any_chunk_size() {
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
    fn gzip_decoder_yields_data_before_the_stream_ends() {
        let bytes = packed(&b"data: {}\n\n".repeat(9_000), 0, b"");
        let mut gunzip = Gunzip::default();
        assert!(!fed(&mut gunzip, &bytes[..bytes.len() / 2]).unwrap().is_empty());
        assert!(!gunzip.may_end());
    }

    #[test]
    fn gzip_members_are_concatenated_and_trailing_garbage_is_an_error() {
        let both = [packed(b"one ", 0, b""), packed(b"two", HAS_NAME, b"name\0")].concat();
        for size in [1, 5, both.len()] {
            let mut gunzip = Gunzip::default();
            assert!(gunzip.may_end(), "an answer without a body");
            let mut all = Vec::new();
            for chunk in both.chunks(size) {
                all.extend(fed(&mut gunzip, chunk).unwrap());
            }
            assert!(all == b"one two" && gunzip.may_end(), "{size}");
            assert_eq!(fed(&mut gunzip, b""), Ok(Vec::new()));
            assert_eq!(fed(&mut gunzip, b"x"), Err(DamagedGzip));
        }
    }

    #[test]
    fn gzip_with_wrong_checksum_or_length_fails_and_truncation_is_detected() {
        let whole = packed(b"some text", 0, b"");
        for from_end in [1, 5] {
            let mut bytes = whole.clone();
            let at = bytes.len() - from_end;
            bytes[at] ^= 1;
            assert_eq!(fed(&mut Gunzip::default(), &bytes), Err(DamagedGzip), "{from_end}");
        }
        let mut gunzip = Gunzip::default();
        assert_eq!(fed(&mut gunzip, &whole[..whole.len() - 2]), Ok(b"some text".to_vec()));
        assert!(!gunzip.may_end());
    }

    #[test]
    fn gzip_decoder_rejects_invalid_header_or_deflate_data() {
        assert_eq!(fed(&mut Gunzip::default(), b"data: {}\n\n"), Err(DamagedGzip));
        assert_eq!(
            fed(&mut Gunzip::default(), &packed(b"x", HAS_NAME, &vec![b'n'; 80_000])),
            Err(DamagedGzip)
        );
        let mut broken = packed(&b"some text that is long enough".repeat(50), 0, b"");
        broken[12..30].fill(0xff);
        assert_eq!(fed(&mut Gunzip::default(), &broken), Err(DamagedGzip));
    }
}
