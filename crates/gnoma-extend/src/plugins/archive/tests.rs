use std::fs;

use super::*;

/// A tar archive of entries: name, kind, target of a link, content.
fn tar(entries: &[(&str, u8, &str, &[u8])]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, kind, target, content) in entries {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000755");
        header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        header[156] = *kind;
        header[157..157 + target.len()].copy_from_slice(target.as_bytes());
        header[257..263].copy_from_slice(b"ustar\0");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        all.extend(header);
        all.extend(*content);
        all.resize(all.len().next_multiple_of(512), 0);
    }
    all.extend([0; 1024]);
    all
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut all = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3];
    all.extend(b"name\0");
    all.extend(miniz_oxide::deflate::compress_to_vec(plain, 6));
    all.extend(crc32fast::hash(plain).to_le_bytes());
    all.extend((plain.len() as u32).to_le_bytes());
    all
}

/// A zip archive of one file; `length` is what its list claims.
fn zip(name: &str, plain: &[u8], length: usize, mode: u32) -> Vec<u8> {
    let packed = miniz_oxide::deflate::compress_to_vec(plain, 6);
    let facts = |all: &mut Vec<u8>| {
        all.extend([20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
        all.extend(crc32fast::hash(plain).to_le_bytes());
        all.extend((packed.len() as u32).to_le_bytes());
        all.extend((length as u32).to_le_bytes());
        all.extend((name.len() as u16).to_le_bytes());
        all.extend([0, 0]);
    };
    let mut all = b"PK\x03\x04".to_vec();
    facts(&mut all);
    all.extend(name.as_bytes());
    all.extend(&packed);
    let list = all.len();
    all.extend(b"PK\x01\x02\x14\x03");
    facts(&mut all);
    all.extend([0; 6]);
    all.extend((mode << 16).to_le_bytes());
    all.extend([0; 4]);
    all.extend(name.as_bytes());
    let size = all.len() - list;
    all.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    all.extend((size as u32).to_le_bytes());
    all.extend((list as u32).to_le_bytes());
    all.extend([0, 0]);
    all
}

/// What comes out, or why nothing does.
fn unpacked(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, PluginArchiveError> {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("a.tgz");
    fs::write(&archive, bytes).unwrap();
    let into = folder.path().join("into");
    fs::create_dir(&into).unwrap();
    unpack_archive(&archive, &into)?;
    let files = super::super::tree::list_files(&into)?;
    assert!(!folder.path().join("out").exists(), "something was written outside");
    Ok(files.into_iter().map(|(name, path)| (name, fs::read(path).unwrap())).collect())
}

#[test]
fn plugin_tar_gzip_and_zip_archives_are_unpacked() {
    let files = tar(&[
        ("p/", b'5', "", b""),
        ("p/plugin.json", b'0', "", b"{}"),
        ("p/run", b'2', "plugin.json", b""),
        ("x", b'L', "", "p/a long name.md\0".as_bytes()),
        ("cut", b'0', "", b"long"),
        ("x", b'x', "", b"17 path=p/pax.md\n"),
        ("cut", b'0', "", b"pax"),
    ]);
    let expected: Vec<(String, Vec<u8>)> = [
        ("p/a long name.md", "long"),
        ("p/pax.md", "pax"),
        ("p/plugin.json", "{}"),
        ("p/run", "{}"),
    ]
    .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
    .to_vec();
    assert_eq!(unpacked(&files).unwrap(), expected);
    assert_eq!(unpacked(&gzip(&files)).unwrap(), expected);
    let zipped = zip("p/a.md", b"hello hello", 11, 0o100_644);
    assert_eq!(unpacked(&zipped).unwrap(), [("p/a.md".to_owned(), b"hello hello".to_vec())]);
}

#[test]
fn plugin_archive_with_path_traversal_or_decompression_bomb_is_refused() {
    let one = |name: &str, kind: u8, target: &str| tar(&[(name, kind, target, b"")]);
    let zeros = vec![0; 200 << 20];
    for (bytes, why) in [
        (one("../out", b'0', ""), "`..`"),
        (one("/out", b'0', ""), "absolute"),
        (one("a", b'2', "../out"), "leads"),
        (one("a", b'2', "/etc/passwd"), "leads out"),
        (one("a", b'1', "b"), "hard link"),
        (one("a", b'3', ""), "not a regular file"),
        (tar(&[("A.md", b'0', "", b""), ("a.md", b'0', "", b"")]), "the same name"),
        (tar(&[("a", b'2', ".", b""), ("a/out", b'0', "", b"")]), "cannot be made"),
        (gzip(&zeros), "unpacks to more"),
        (zip("a", &zeros[..1 << 20], 10, 0), "unpacks to more"),
        (zip("../out", b"x", 1, 0), "`..`"),
        (zip("l", b"../../out", 9, 0o120_777), "leads"),
        (b"no archive at all".to_vec(), "damaged"),
        (b"PK\x05\x06".to_vec(), "damaged"),
        (vec![0x1f, 0x8b, 8, 4, 0], "damaged"),
    ] {
        let refused = unpacked(&bytes).unwrap_err().to_string();
        assert!(refused.contains(why), "{why}: {refused}");
    }
}

proptest::proptest! {
    #[test]
    fn plugin_archive_of_any_bytes_is_unpacked_or_refused(bytes: Vec<u8>, which in 0..3_usize) {
        let mut all = [gzip(b"x"), zip("a", b"x", 1, 0), tar(&[("a", b'0', "", b"x")])][which].clone();
        for (at, byte) in bytes.iter().enumerate().take(8) {
            let place = (usize::from(*byte) * 7 + at * 31) % all.len();
            all[place] ^= *byte;
        }
        drop(unpacked(&all));
    }
}
