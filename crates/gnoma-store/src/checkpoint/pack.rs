//! Packs: many small objects in one file, written once, never changed.
//!
//! `gnomapk1`, the objects one after another, an index entry for each, and a trailer that says where the index
//! starts, how long it is, and its hash. A pack with a wrong trailer was damaged by a power failure: it is skipped,
//! and its content is stored again when it is met.

use std::{
    fs::File,
    io::{BufWriter, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use super::{
    codec::ByteReader,
    error::{Error, PathErrorExt},
    hash::{HASH_BYTES, Hash},
    places::{Places, UnfinishedFile, unique_name},
};

const MAGIC: &[u8; 8] = b"gnomapk1";
const ENTRY_BYTES: usize = HASH_BYTES + 8 + 4 + 4 + 1;
const TRAILER_BYTES: usize = 8 + 4 + HASH_BYTES + MAGIC.len();

/// Ending of a pack's name.
pub(super) const ENDING: &str = "pack";

/// Largest object in a pack, plain. Larger files are alone; only a folder of millions comes close.
pub(super) const MAX_PACKED_BYTES: usize = 256 << 20;

/// Most objects in a pack that is read.
const MAX_OBJECTS: u32 = 4 << 20;

/// The place of an object in its pack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) offset: u64,
    /// Bytes in the pack.
    pub(super) stored: u32,
    /// Bytes when unpacked.
    pub(super) plain: u32,
    pub(super) is_compressed: bool,
}

/// A pack that is being written.
pub(super) struct PackWriter {
    unfinished: UnfinishedFile,
    out: BufWriter<File>,
    offset: u64,
    index: Vec<(Hash, Spot)>,
}

impl PackWriter {
    pub(super) fn create(places: &Places) -> Result<Self, Error> {
        let unfinished = UnfinishedFile::create(places)?;
        let file = unfinished.file().try_clone().io_context("open", unfinished.path())?;
        let mut out = BufWriter::with_capacity(256 << 10, file);
        out.write_all(MAGIC).io_context("write", unfinished.path())?;
        Ok(Self { unfinished, out, offset: MAGIC.len() as u64, index: Vec::new() })
    }

    /// Bytes written so far.
    pub(super) fn len(&self) -> u64 {
        self.offset
    }

    /// Appends an object as it is to be stored.
    pub(super) fn push(
        &mut self,
        hash: Hash,
        stored: &[u8],
        plain: usize,
        is_compressed: bool,
    ) -> Result<(), Error> {
        let (Ok(stored_bytes), Ok(plain)) = (u32::try_from(stored.len()), u32::try_from(plain))
        else {
            return Err(Error::Damaged(format!("object `{hash}` is too large for a pack")));
        };
        self.out.write_all(stored).io_context("write", self.unfinished.path())?;
        let spot = Spot { offset: self.offset, stored: stored_bytes, plain, is_compressed };
        self.offset += u64::from(stored_bytes);
        self.index.push((hash, spot));
        Ok(())
    }

    /// Completes the pack; gives its name and what is in it.
    pub(super) fn finish(
        mut self,
        places: &Places,
        sync: bool,
    ) -> Result<(String, Vec<(Hash, Spot)>), Error> {
        let mut index = Vec::with_capacity(self.index.len() * ENTRY_BYTES);
        for (hash, spot) in &self.index {
            index.extend_from_slice(&hash.0);
            index.extend_from_slice(&spot.offset.to_le_bytes());
            index.extend_from_slice(&spot.stored.to_le_bytes());
            index.extend_from_slice(&spot.plain.to_le_bytes());
            index.push(u8::from(spot.is_compressed));
        }
        let digest = Hash::of_bytes(&index);
        let count = self.index.len() as u32;
        index.extend_from_slice(&self.offset.to_le_bytes());
        index.extend_from_slice(&count.to_le_bytes());
        index.extend_from_slice(&digest.0);
        index.extend_from_slice(MAGIC);
        let path = self.unfinished.path();
        self.out.write_all(&index).and_then(|()| self.out.flush()).io_context("write", path)?;
        let name = format!("{}.{ENDING}", unique_name());
        self.unfinished.finish(&places.packs_folder().join(&name), sync)?;
        Ok((name, self.index))
    }
}

/// Reads a pack's index; `None` when the pack is not whole.
pub(super) fn read_index(path: &Path) -> Result<Option<Vec<(Hash, Spot)>>, Error> {
    let file = File::open(path).io_context("open", path)?;
    let length = file.metadata().io_context("read", path)?.len();
    let Some(trailer_at) = length.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, trailer_at).io_context("read", path)?;
    let Some((index_at, count, digest)) = parse_trailer(&trailer) else {
        return Ok(None);
    };
    let index_bytes = count as usize * ENTRY_BYTES;
    if count > MAX_OBJECTS || index_at.checked_add(index_bytes as u64) != Some(trailer_at) {
        return Ok(None);
    }
    let mut index = vec![0; index_bytes];
    file.read_exact_at(&mut index, index_at).io_context("read", path)?;
    if Hash::of_bytes(&index) != digest {
        return Ok(None);
    }
    Ok(index.chunks_exact(ENTRY_BYTES).map(parse_entry).collect())
}

fn parse_trailer(bytes: &[u8]) -> Option<(u64, u32, Hash)> {
    let mut reader = ByteReader(bytes);
    let index_at = u64::from_le_bytes(reader.take_bytes(8)?.try_into().ok()?);
    let count = u32::from_le_bytes(reader.take_bytes(4)?.try_into().ok()?);
    let digest = reader.read_hash()?;
    (reader.take_bytes(MAGIC.len())? == MAGIC).then_some((index_at, count, digest))
}

fn parse_entry(bytes: &[u8]) -> Option<(Hash, Spot)> {
    let mut reader = ByteReader(bytes);
    let hash = reader.read_hash()?;
    let offset = u64::from_le_bytes(reader.take_bytes(8)?.try_into().ok()?);
    let stored = u32::from_le_bytes(reader.take_bytes(4)?.try_into().ok()?);
    let plain = u32::from_le_bytes(reader.take_bytes(4)?.try_into().ok()?);
    let is_compressed = reader.read_byte()? != 0;
    let fits = stored as usize <= MAX_PACKED_BYTES * 2 && plain as usize <= MAX_PACKED_BYTES;
    fits.then_some((hash, Spot { offset, stored, plain, is_compressed }))
}
