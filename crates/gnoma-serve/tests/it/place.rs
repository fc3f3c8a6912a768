//! One server at a place, and only one's own folder.

use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::net::UnixListener};

use gnoma_serve::{ConnectError, Place, PlaceError, connect_to_server};
use tempfile::TempDir;

use super::support::Served;

fn place(folder: &TempDir) -> Place {
    Place::from_dirs(folder.path().to_str(), None)
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let folder = TempDir::new().unwrap();
    let place = place(&folder);
    fs::create_dir(place.folder()).unwrap();
    fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o700)).unwrap();
    // What a server leaves that was killed.
    drop(UnixListener::bind(place.socket_path()).unwrap());
    fs::write(place.folder().join("server.lock"), "99999\n").unwrap();
    assert!(matches!(
        connect_to_server(&place.socket_path(), "t", "c").await,
        Err(ConnectError::NotRunning)
    ));
    let held = place.listen().unwrap();
    let mode = fs::metadata(place.socket_path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(held);
    assert!(!place.socket_path().exists(), "a server takes its socket along");
    place.listen().unwrap();
}

#[tokio::test]
async fn second_server_gets_the_pid_of_the_first() {
    let served = Served::new();
    let Err(PlaceError::Taken { pid }) = served.place.listen() else { panic!("two servers") };
    assert_eq!(pid, std::process::id().to_string());
    served.still_serves().await;
    let folder = served.folder.path().to_owned();
    assert!(folder.join("gnoma").exists());
}

#[tokio::test]
async fn socket_folder_with_open_permissions_is_refused() {
    let folder = TempDir::new().unwrap();
    let place = place(&folder);
    fs::create_dir(place.folder()).unwrap();
    for mode in [0o755, 0o750, 0o701, 0o770] {
        fs::set_permissions(place.folder(), fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(place.listen(), Err(PlaceError::NotOwn(_))), "{mode:o}");
        assert!(!place.socket_path().exists());
    }
    fs::remove_dir_all(place.folder()).unwrap();
    let other = TempDir::new().unwrap();
    std::os::unix::fs::symlink(other.path(), place.folder()).unwrap();
    assert!(matches!(place.listen(), Err(PlaceError::NotOwn(_))), "a link");
}
