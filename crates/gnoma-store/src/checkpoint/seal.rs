//! Hides the content of small files from whatever searches a disk for words: indexers, search, backups of single
//! files.
//!
//! Objects in packs are combined with the output of BLAKE3 under a key that is stored beside them, for the object's
//! own digest. Whoever can read the key can read the objects; without it they are noise. Large files are stored as
//! they are, so that file systems can share their blocks.

use std::{
    fs::{self, File},
    io::{self, Write},
};

use rustix::rand::{GetRandomFlags, getrandom};

use super::{
    error::{Error, PathErrorExt},
    hash::Hash,
    places::{Places, UnfinishedFile},
};

const KEY_BYTES: usize = 32;

/// The key that a vault's objects are sealed with.
pub(super) struct Seal([u8; KEY_BYTES]);

impl Seal {
    /// The key of the vault, made when there is none.
    pub(super) fn open(places: &Places, sync: bool) -> Result<Self, Error> {
        let place = places.key_path();
        match fs::read(&place) {
            Ok(key) => Self::from_key(&key),
            Err(absent) if absent.kind() == io::ErrorKind::NotFound => {
                Self::create_key(places, sync)?;
                Self::from_key(&fs::read(&place).io_context("read", &place)?)
            }
            Err(failed) => Err(failed).io_context("read", &place),
        }
    }

    fn from_key(key: &[u8]) -> Result<Self, Error> {
        key.try_into().map(Self).map_err(|_| Error::Damaged("its key is incomplete".to_owned()))
    }

    /// Of several processes that make a key at once, one makes it.
    fn create_key(places: &Places, sync: bool) -> Result<(), Error> {
        let mut key = [0; KEY_BYTES];
        let mut filled = 0;
        while let Some(free) = key.get_mut(filled..).filter(|free| !free.is_empty()) {
            filled += getrandom(free, GetRandomFlags::empty())
                .map_err(io::Error::from)
                .io_context("make a key for", places.root())?;
        }
        let place = places.key_path();
        let unfinished = UnfinishedFile::create(places)?;
        unfinished.file().write_all(&key).io_context("write", &place)?;
        if sync {
            unfinished.file().sync_data().io_context("write to disk", &place)?;
        }
        match fs::hard_link(unfinished.path(), &place) {
            Err(failed) if failed.kind() != io::ErrorKind::AlreadyExists => {
                Err(failed).io_context("create", &place)
            }
            _ => sync_folder(places, sync),
        }
    }

    /// Seals an object's bytes, or opens them: the same twice is nothing.
    pub(super) fn apply(&self, object: &Hash, bytes: &mut [u8]) {
        const BLOCK_BYTES: usize = 4096;
        let mut stream = blake3::Hasher::new_keyed(&self.0).update(&object.0).finalize_xof();
        let mut block = [0; BLOCK_BYTES];
        for chunk in bytes.chunks_mut(BLOCK_BYTES) {
            let (block, _) = block.split_at_mut(chunk.len());
            stream.fill(block);
            chunk.iter_mut().zip(block).for_each(|(byte, noise)| *byte ^= *noise);
        }
    }
}

/// A pack that survives a power failure is worth nothing without its key.
fn sync_folder(places: &Places, sync: bool) -> Result<(), Error> {
    if !sync {
        return Ok(());
    }
    File::open(places.root())
        .and_then(|folder| folder.sync_all())
        .io_context("write to disk", places.root())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_checkpoint_object_hides_its_content_and_decrypts() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::create(folder.path()).unwrap();
        let (first, second) =
            (Seal::open(&places, true).unwrap(), Seal::open(&places, false).unwrap());
        let plain = b"the same words again and again ".repeat(400);
        let hash = Hash::of_bytes(&plain);
        let mut sealed = plain.clone();
        first.apply(&hash, &mut sealed);
        assert!(!sealed.windows(10).any(|window| window == b"same words"));
        second.apply(&hash, &mut sealed);
        assert_eq!(sealed, plain);
    }
}
