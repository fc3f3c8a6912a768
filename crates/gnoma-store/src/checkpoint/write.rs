//! Adding objects: everything one snapshot stores, in as few files as possible.

use std::{
    collections::HashSet,
    fs::File,
    io::{Read, Write},
    path::Path,
};

use gnoma_core::sync::Mutex;

use super::{
    error::{Error, PathErrorExt},
    hash::Hash,
    objects::{CHUNK_BYTES, HashingWriter, Objects, copy_chunks},
    pack::PackWriter,
    places::{UnfinishedFile, sync_folder},
};

/// Fast; higher levels cost more time than a turn has.
const LEVEL: i32 = 1;

/// Below this, compressing gains nothing.
const MIN_COMPRESSED_BYTES: usize = 64;

/// A pack is closed at this size, so that later only the packs with dead objects are rewritten.
const MAX_PACK_BYTES: u64 = 64 << 20;

/// The objects that a snapshot adds. Several threads may store at once; dropped unfinished, nothing was added.
pub(super) struct Batch<'a> {
    objects: &'a Objects,
    sync: bool,
    open: Mutex<OpenBatch>,
    compressors: Mutex<Vec<zstd::bulk::Compressor<'static>>>,
}

#[derive(Default)]
struct OpenBatch {
    pack: Option<PackWriter>,
    hashes: HashSet<Hash>,
    has_large: bool,
    stored_bytes: u64,
}

impl<'a> Batch<'a> {
    pub(super) fn new(objects: &'a Objects, sync: bool) -> Self {
        let (open, compressors) = (Mutex::default(), Mutex::default());
        Self { objects, sync, open, compressors }
    }

    /// Stores bytes, unless they are stored already.
    pub(super) fn store_bytes(&self, plain: &[u8]) -> Result<Hash, Error> {
        let hash = Hash::of_bytes(plain);
        if self.is_stored(&hash) {
            return Ok(hash);
        }
        let packed = self.compress(plain);
        let is_compressed = packed.is_some();
        let mut stored = packed.unwrap_or_else(|| plain.to_vec());
        self.objects.seal.apply(&hash, &mut stored);
        self.push(hash, &stored, plain.len(), is_compressed)?;
        Ok(hash)
    }

    /// Stores an object in the form it has in another pack: packed and sealed.
    pub(super) fn push(
        &self,
        hash: Hash,
        stored: &[u8],
        plain: usize,
        is_compressed: bool,
    ) -> Result<(), Error> {
        let mut open = self.open.lock();
        if !open.hashes.insert(hash) {
            return Ok(());
        }
        let mut pack = match open.pack.take() {
            Some(pack) => pack,
            None => PackWriter::create(&self.objects.places)?,
        };
        pack.push(hash, stored, plain, is_compressed)?;
        open.stored_bytes += stored.len() as u64;
        if pack.len() >= MAX_PACK_BYTES {
            self.close_pack(pack)?;
        } else {
            open.pack = Some(pack);
        }
        Ok(())
    }

    /// Stores up to `limit` bytes of a large file without holding them; gives hash and length.
    pub(super) fn put_large(&self, mut file: &File, limit: u64) -> Result<(Hash, u64), Error> {
        let unfinished = UnfinishedFile::create(&self.objects.places)?;
        let path = unfinished.path().to_owned();
        let mut head = vec![0; CHUNK_BYTES];
        let count = read_full(&mut file, &mut head).io_context("read", &path)?;
        head.truncate(count);
        let is_compressed = self.compress(&head).is_some();
        let mut rest = head.as_slice().chain(&mut file).take(limit);
        let (hash, length) = if is_compressed {
            let mut packed = zstd::stream::write::Encoder::new(unfinished.file(), LEVEL)
                .io_context("write", &path)?;
            let written = hash_through(&mut rest, &mut packed, &path)?;
            packed.finish().io_context("write", &path)?;
            written
        } else {
            hash_through(&mut rest, &mut unfinished.file(), &path)?
        };
        self.name_large(unfinished, hash, is_compressed)?;
        Ok((hash, length))
    }

    /// Stores a large file by sharing its blocks, where the file system can: a frozen copy at once.
    /// `None` where it cannot.
    #[cfg(target_os = "linux")]
    pub(super) fn put_clone(&self, file: &File) -> Result<Option<(Hash, u64)>, Error> {
        let unfinished = UnfinishedFile::create(&self.objects.places)?;
        if rustix::fs::ioctl_ficlone(unfinished.file(), file).is_err() {
            return Ok(None);
        }
        let path = unfinished.path().to_owned();
        let written = hash_through(&mut unfinished.file(), &mut std::io::sink(), &path)?;
        self.name_large(unfinished, written.0, false)?;
        Ok(Some(written))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn put_clone(&self, _file: &File) -> Result<Option<(Hash, u64)>, Error> {
        Ok(None)
    }

    /// Makes everything stored findable, after a power failure too; gives the bytes added.
    pub(super) fn finish(self) -> Result<u64, Error> {
        let open = std::mem::take(&mut *self.open.lock());
        if let Some(pack) = open.pack {
            self.close_pack(pack)?;
        }
        let places = &self.objects.places;
        if self.sync && !open.hashes.is_empty() {
            sync_folder(&places.packs_folder())?;
        }
        if self.sync && open.has_large {
            sync_folder(&places.loose_folder())?;
        }
        Ok(open.stored_bytes)
    }

    fn is_stored(&self, hash: &Hash) -> bool {
        self.open.lock().hashes.contains(hash) || self.objects.contains(hash)
    }

    fn close_pack(&self, pack: PackWriter) -> Result<(), Error> {
        let (name, index) = pack.finish(&self.objects.places, self.sync)?;
        self.objects.add_pack(name, index);
        Ok(())
    }

    fn name_large(
        &self,
        unfinished: UnfinishedFile,
        hash: Hash,
        is_compressed: bool,
    ) -> Result<(), Error> {
        if self.objects.contains(&hash) {
            return Ok(());
        }
        let bytes = unfinished.file().metadata().io_context("read", unfinished.path())?.len();
        unfinished.finish(&self.objects.large_path(&hash, is_compressed), self.sync)?;
        self.objects.add_large(hash, is_compressed);
        let mut open = self.open.lock();
        open.has_large = true;
        open.stored_bytes += bytes;
        Ok(())
    }

    /// `None` when it does not get smaller.
    fn compress(&self, plain: &[u8]) -> Option<Vec<u8>> {
        if plain.len() < MIN_COMPRESSED_BYTES {
            return None;
        }
        let kept = self.compressors.lock().pop();
        let mut compressor = match kept {
            Some(compressor) => compressor,
            None => zstd::bulk::Compressor::new(LEVEL).ok()?,
        };
        let packed = compressor.compress(plain);
        self.compressors.lock().push(compressor);
        packed.ok().filter(|packed| packed.len() < plain.len() - plain.len() / 16)
    }
}

fn hash_through(
    from: &mut impl Read,
    to: &mut impl Write,
    path: &Path,
) -> Result<(Hash, u64), Error> {
    let mut hashing = HashingWriter { out: to, hasher: blake3::Hasher::new() };
    let length = copy_chunks(from, &mut hashing).io_context("copy", path)?;
    Ok((Hash(*hashing.hasher.finalize().as_bytes()), length))
}

/// Fills `buffer` as far as the file reaches.
pub(super) fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(free) = buffer.get_mut(filled..).filter(|free| !free.is_empty()) {
        match file.read(free) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(interrupted) if interrupted.kind() == std::io::ErrorKind::Interrupted => {}
            Err(failed) => return Err(failed),
        }
    }
    Ok(filled)
}
