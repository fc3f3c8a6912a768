//! Writes archives in the ustar format of POSIX.1-1988. Pure.

/// Bytes of a block. Headers have one, contents fill whole ones.
const BLOCK_BYTES: usize = 512;

/// The end of an archive: two empty blocks.
pub(super) const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];

/// The place of the header's checksum.
const CHECKSUM: std::ops::Range<usize> = 148..156;

/// Returns a file with its header. `name`: ASCII, at most 100 bytes; `time_s`: seconds since 1970.
pub(super) fn encode_entry(name: &str, content: &[u8], time_s: i64) -> Vec<u8> {
    let mut header = [0_u8; BLOCK_BYTES];
    let mut put = |at: usize, bytes: &[u8]| {
        for (place, byte) in header.iter_mut().skip(at).zip(bytes) {
            *place = *byte;
        }
    };
    put(0, name.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, format!("{:011o}\0", time_s.max(0)).as_bytes());
    // The checksum counts its own field as blanks.
    put(CHECKSUM.start, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    for (place, byte) in header.iter_mut().skip(CHECKSUM.start).zip(format!("{sum:06o}\0 ").bytes())
    {
        *place = byte;
    }
    let mut entry = header.to_vec();
    entry.extend_from_slice(content);
    entry.resize(entry.len().next_multiple_of(BLOCK_BYTES), 0);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_report_archive_is_readable_by_tar() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let content = "x".repeat(700);
        let bytes = [
            encode_entry("one.txt", content.as_bytes(), 1_800_000_000),
            encode_entry("two", b"", 0),
            END.to_vec(),
        ];
        std::fs::write(&path, bytes.concat()).unwrap();
        let tar = |args: &[&str]| std::process::Command::new("tar").args(args).arg(&path).output();
        let Ok(listed) = tar(&["-tf"]) else {
            return gnoma_testkit::skip_test("`tar` is not installed");
        };
        assert_eq!(String::from_utf8_lossy(&listed.stdout), "one.txt\ntwo\n");
        let unpacked = std::process::Command::new("tar")
            .arg("-xOf")
            .arg(&path)
            .arg("one.txt")
            .output()
            .unwrap();
        assert!(unpacked.status.success() && unpacked.stdout == content.as_bytes());
    }
}
