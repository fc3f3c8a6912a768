//! Answers that come compressed though nobody asked for it, as some proxies send them. Only gzip: what else
//! there is, nobody sends unasked.

use miniz_oxide::{
    DataFormat, MZError, MZFlush, MZStatus,
    inflate::stream::{InflateState, inflate},
};

/// Most bytes of a head; its texts have no limit of their own.
const MAX_HEAD_BYTES: usize = 70_000;
/// What is unpacked at a time.
const PIECE_BYTES: usize = 16 << 10;
/// How a stream begins: gzip, with deflate.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// Flags of the head (RFC 1952): what stands before the content.
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// The bytes are no gzip, or damaged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Unpacks a stream as it comes.
#[derive(Default)]
pub(crate) struct Gunzip {
    /// What has come of the head.
    head: Vec<u8>,
    /// None before the head is whole.
    state: Option<Box<InflateState>>,
    /// What comes after the content is its checksum.
    is_over: bool,
}

impl Gunzip {
    /// What the next bytes hold.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Damaged> {
        if self.state.is_some() {
            return self.unpack(bytes);
        }
        self.head.extend_from_slice(bytes);
        let Some(end) = head_length(&self.head)? else { return Ok(Vec::new()) };
        self.state = Some(InflateState::new_boxed(DataFormat::Raw));
        let head = std::mem::take(&mut self.head);
        self.unpack(head.get(end..).unwrap_or_default())
    }

    fn unpack(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, Damaged> {
        let (mut all, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        let Some(state) = &mut self.state else { return Ok(all) };
        while !self.is_over {
            let step = inflate(state, bytes, &mut piece, MZFlush::None);
            all.extend_from_slice(piece.get(..step.bytes_written).unwrap_or_default());
            bytes = bytes.get(step.bytes_consumed..).unwrap_or_default();
            let waits = bytes.is_empty() && step.bytes_written < piece.len();
            match step.status {
                Ok(MZStatus::StreamEnd) => self.is_over = true,
                Ok(_) if !waits => {}
                Ok(_) | Err(MZError::Buf) => break,
                Err(_) => return Err(Damaged),
            }
        }
        Ok(all)
    }
}

/// How long the head is; `None` where more of it has to come.
fn head_length(bytes: &[u8]) -> Result<Option<usize>, Damaged> {
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

    #[test]
    fn a_stream_is_unpacked_in_pieces_of_any_size() {
        let text: Vec<u8> =
            (0..40_000_u32).flat_map(|number| format!("{number} ").into_bytes()).collect();
        let named = packed(&text, HAS_NAME | HAS_EXTRA, b"\x02\0xyname\0");
        for bytes in [packed(&text, 0, b""), named] {
            for size in [1, 7, 1_000, bytes.len()] {
                let mut gunzip = Gunzip::default();
                let fed = bytes.chunks(size).map(|chunk| gunzip.feed(chunk).unwrap());
                assert!(fed.flatten().eq(text.iter().copied()), "{size}");
            }
        }
    }

    #[test]
    fn what_has_come_is_there_before_the_rest_comes() {
        let bytes = packed(&b"data: {}\n\n".repeat(9_000), 0, b"");
        let mut gunzip = Gunzip::default();
        assert!(!gunzip.feed(&bytes[..bytes.len() / 2]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        assert_eq!(Gunzip::default().feed(b"data: {}\n\n"), Err(Damaged));
        assert_eq!(
            Gunzip::default().feed(&packed(b"x", HAS_NAME, &vec![b'n'; 80_000])),
            Err(Damaged)
        );
        let mut broken = packed(&b"some text that is long enough".repeat(50), 0, b"");
        broken[12..30].fill(0xff);
        assert_eq!(Gunzip::default().feed(&broken), Err(Damaged));
    }
}
