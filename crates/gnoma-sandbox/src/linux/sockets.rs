//! Sockets of the host that a path leads to: the doors to services that act for the user.
//!
//! A read-only mount does not keep anybody from connecting, and before version 9 neither does
//! Landlock. So each socket that the kernel lists is masked by a mount, and `/run`, where services
//! put new ones, is replaced as a whole. What this cannot see: a socket bound by a relative path,
//! and one made outside `/run` after the command was started.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// Most sockets that are masked; a machine with more has only the first of them masked.
const MAX_SOCKETS: usize = 4096;

/// Sockets that only answer questions about users and hosts of this machine.
const HARMLESS: [&str; 2] = ["/run/nscd/socket", "/var/lib/sss/pipes/nss"];

/// Every socket with a path that exists, except below the folders that are masked anyway.
pub(super) fn of_host(masked: &[&Path]) -> BTreeSet<PathBuf> {
    let table = fs::read("/proc/self/net/unix").unwrap_or_default();
    socket_paths(&String::from_utf8_lossy(&table))
        .filter(|path| !masked.iter().any(|folder| path.starts_with(folder)))
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| is_socket(path) && HARMLESS.iter().all(|known| path != Path::new(known)))
        .take(MAX_SOCKETS)
        .collect()
}

/// The paths in the kernel's table: the last of eight columns, absent for sockets without a name
/// and starting with `@` for names that are no paths.
fn socket_paths(table: &str) -> impl Iterator<Item = &Path> {
    table.lines().filter_map(|line| {
        let start = line.find(" /")?;
        line.get(start + 1..).map(Path::new)
    })
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_net_unix_yields_socket_paths_without_abstract_names() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 17012 /run/systemd/private\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 20100\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22222 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 23000 /tmp/with space/s\n";
        let paths: Vec<_> = socket_paths(table).collect();
        assert_eq!(paths, [Path::new("/run/systemd/private"), Path::new("/tmp/with space/s")]);
    }
}
