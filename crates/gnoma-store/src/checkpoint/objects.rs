//! The objects of a vault: found by hash, checked on every read.
//!
//! Small ones are in packs, one pack per snapshot; files above [`MAX_WHOLE_BYTES`] are separate and are streamed.
//! The list of objects is in memory, and is read again when another process deleted some.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read, Seek, Write},
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
};

use gnoma_core::sync::Mutex;

use super::{
    error::{Error, PathErrorExt},
    hash::Hash,
    pack::{self, Spot},
    places::Places,
    seal::Seal,
};

/// Files up to this size are read as a whole and packed.
pub(super) const MAX_WHOLE_BYTES: u64 = 4 << 20;

/// Bytes moved at once when streaming.
pub(super) const CHUNK_BYTES: usize = 256 << 10;

/// Ending of a large object that is compressed; without it the file is the object.
pub(super) const COMPRESSED: &str = "zst";

/// The location of an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum ObjectLocation {
    /// In the pack with this number.
    Packed(u32, Spot),
    /// In a file of its own.
    Large { is_compressed: bool },
}

#[derive(Default)]
struct Table {
    /// Names of packs; their numbers are positions and never change while the process lives.
    packs: Vec<String>,
    numbers: HashMap<String, u32>,
    places: HashMap<Hash, ObjectLocation>,
}

/// All objects of a vault.
pub(super) struct Objects {
    pub(super) places: Places,
    pub(super) seal: Seal,
    table: RwLock<Table>,
    last_pack: Mutex<Option<(u32, Arc<File>)>>,
}

impl Objects {
    /// Reads which objects there are.
    pub(super) fn open(places: Places, seal: Seal) -> Result<Self, Error> {
        let objects = Self {
            places,
            seal,
            table: RwLock::new(Table::default()),
            last_pack: Mutex::new(None),
        };
        objects.refresh()?;
        Ok(objects)
    }

    /// Reads again which objects there are.
    pub(super) fn refresh(&self) -> Result<(), Error> {
        // Held throughout: what another thread adds meanwhile must not get lost with the old table.
        let mut known = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let mut table = Table {
            packs: known.packs.clone(),
            numbers: known.numbers.clone(),
            places: HashMap::with_capacity(known.places.len()),
        };
        let packs = self.places.packs_folder();
        for name in list_names(&packs)? {
            let path = packs.join(&name);
            match pack::read_index(&path) {
                Ok(Some(index)) => table.add_pack(name, index),
                Ok(None) => {}
                Err(_) if !path.exists() => {}
                Err(failed) => return Err(failed),
            }
        }
        for name in list_names(&self.places.loose_folder())? {
            let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
            if let Some(hash) = Hash::parse(stem) {
                let place = ObjectLocation::Large { is_compressed: ending == COMPRESSED };
                table.places.entry(hash).or_insert(place);
            }
        }
        *known = table;
        drop(known);
        *self.last_pack.lock() = None;
        Ok(())
    }

    /// Reads what other processes added since, trees above all. Cheaper than
    /// [`refresh`](Self::refresh), but does not notice what was deleted.
    pub(super) fn find_new_packs(&self) -> Result<(), Error> {
        let packs = self.places.packs_folder();
        for name in list_names(&packs)? {
            if self.pack_number(&name).is_none()
                && let Ok(Some(index)) = pack::read_index(&packs.join(&name))
            {
                self.add_pack(name, index);
            }
        }
        Ok(())
    }

    pub(super) fn contains(&self, hash: &Hash) -> bool {
        self.location(hash).is_some()
    }

    /// Returns the location of an object.
    pub(super) fn location(&self, hash: &Hash) -> Option<ObjectLocation> {
        self.read_table(|table| table.places.get(hash).copied())
    }

    /// The number of the pack called `name`.
    pub(super) fn pack_number(&self, name: &str) -> Option<u32> {
        self.read_table(|table| table.numbers.get(name).copied())
    }

    /// Makes a finished pack known.
    pub(super) fn add_pack(&self, name: String, index: Vec<(Hash, Spot)>) {
        self.table.write().unwrap_or_else(PoisonError::into_inner).add_pack(name, index);
    }

    /// Makes a finished large object known.
    pub(super) fn add_large(&self, hash: Hash, is_compressed: bool) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.places.entry(hash).or_insert(ObjectLocation::Large { is_compressed });
    }

    /// Path of a large object.
    pub(super) fn large_path(&self, hash: &Hash, is_compressed: bool) -> PathBuf {
        let name = if is_compressed { format!("{hash}.{COMPRESSED}") } else { hash.to_string() };
        self.places.loose_folder().join(name)
    }

    /// An object that fits in memory, as it was stored.
    pub(super) fn read(&self, hash: &Hash) -> Result<Vec<u8>, Error> {
        match self.location(hash) {
            Some(ObjectLocation::Packed(pack, spot)) => {
                let mut stored = self.read_packed(pack, spot)?;
                self.seal.apply(hash, &mut stored);
                let plain = unpack_object(stored, spot);
                plain
                    .filter(|plain| Hash::of_bytes(plain) == *hash)
                    .ok_or_else(|| damaged_error(hash))
            }
            Some(ObjectLocation::Large { .. }) => {
                let mut plain = Vec::new();
                self.copy_to(hash, &mut plain)?;
                Ok(plain)
            }
            None => Err(missing_error(hash)),
        }
    }

    /// The bytes of a packed object as they are in the pack, sealed.
    pub(super) fn read_packed(&self, pack: u32, spot: Spot) -> Result<Vec<u8>, Error> {
        let file = self.pack_file(pack)?;
        let mut stored = vec![0; spot.stored as usize];
        file.read_exact_at(&mut stored, spot.offset)
            .io_context("read", &self.places.packs_folder())?;
        Ok(stored)
    }

    /// Writes an object of any size to `out`. On an error what was written is worthless.
    pub(super) fn copy_to(&self, hash: &Hash, out: &mut impl Write) -> Result<(), Error> {
        let Some(ObjectLocation::Large { is_compressed }) = self.location(hash) else {
            return out.write_all(&self.read(hash)?).io_context("write", self.places.root());
        };
        let path = self.large_path(hash, is_compressed);
        let file = File::open(&path).io_context("open", &path)?;
        let mut hashed = HashingWriter { out, hasher: blake3::Hasher::new() };
        let copied = if is_compressed {
            zstd::stream::read::Decoder::new(file)
                .and_then(|mut plain| copy_chunks(&mut plain, &mut hashed))
        } else {
            copy_chunks(&mut &file, &mut hashed)
        };
        let digest = Hash(*hashed.hasher.finalize().as_bytes());
        match copied {
            Ok(_) if digest == *hash => Ok(()),
            Err(failed) if failed.kind() == io::ErrorKind::StorageFull => {
                Err(failed).io_context("write", &path)
            }
            _ => Err(damaged_error(hash)),
        }
    }

    /// A large object that is stored plain: its file, after checking it, for cloning.
    pub(super) fn plain_file(&self, hash: &Hash) -> Option<File> {
        let Some(ObjectLocation::Large { is_compressed: false }) = self.location(hash) else {
            return None;
        };
        let mut file = File::open(self.large_path(hash, false)).ok()?;
        let mut hasher = blake3::Hasher::new();
        copy_chunks(&mut file, &mut hasher).ok()?;
        file.rewind().ok()?;
        (Hash(*hasher.finalize().as_bytes()) == *hash).then_some(file)
    }

    fn pack_file(&self, pack: u32) -> Result<Arc<File>, Error> {
        let mut last = self.last_pack.lock();
        if let Some((number, file)) = last.as_ref()
            && *number == pack
        {
            return Ok(Arc::clone(file));
        }
        let name = self.read_table(|table| table.packs.get(pack as usize).cloned());
        let path = self.places.packs_folder().join(name.unwrap_or_default());
        let file = Arc::new(File::open(&path).io_context("open", &path)?);
        *last = Some((pack, Arc::clone(&file)));
        Ok(file)
    }

    fn read_table<T>(&self, read: impl FnOnce(&Table) -> T) -> T {
        read(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Table {
    fn add_pack(&mut self, name: String, index: Vec<(Hash, Spot)>) {
        let next = u32::try_from(self.packs.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.packs.push(name);
        }
        self.places.reserve(index.len());
        for (hash, spot) in index {
            self.places.entry(hash).or_insert(ObjectLocation::Packed(number, spot));
        }
    }
}

/// The names in a folder of the vault, oldest first; foreign ones that are not text are passed over.
pub(super) fn list_names(folder: &std::path::Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).io_context("list", folder)? {
        if let Ok(name) = entry.io_context("list", folder)?.file_name().into_string() {
            names.push(name);
        }
    }
    gnoma_core::sort::sort_items(&mut names);
    Ok(names)
}

fn unpack_object(stored: Vec<u8>, spot: Spot) -> Option<Vec<u8>> {
    if spot.is_compressed {
        zstd::bulk::decompress(&stored, spot.plain as usize).ok()
    } else {
        Some(stored)
    }
}

fn damaged_error(hash: &Hash) -> Error {
    Error::Damaged(format!("object `{hash}` is not what was stored"))
}

fn missing_error(hash: &Hash) -> Error {
    Error::Damaged(format!("object `{hash}` is missing"))
}

/// Copies with a buffer of fixed size.
pub(super) fn copy_chunks(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut total = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => count,
            Err(interrupted) if interrupted.kind() == io::ErrorKind::Interrupted => continue,
            Err(failed) => return Err(failed),
        };
        to.write_all(buffer.get(..count).unwrap_or_default())?;
        total += count as u64;
    }
}

/// A writer that hashes what passes through it.
pub(super) struct HashingWriter<'a, W> {
    pub(super) out: &'a mut W,
    pub(super) hasher: blake3::Hasher,
}

impl<W: Write> Write for HashingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
