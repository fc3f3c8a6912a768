//! Files get the bits that the session's own mask leaves, whatever the mask of the process is.

use std::{fs, os::unix::fs::PermissionsExt as _};

use gnoma_tools::ToolOptions;
use serde_json::json;

use crate::support::{Bench, is_failed};

fn mode(bench: &Bench, name: &str) -> u32 {
    fs::metadata(bench.folder.path().join(name)).unwrap().permissions().mode() & 0o7777
}

#[tokio::test]
async fn umask_of_each_session_applies_to_new_files_and_folders() {
    for (umask, file, folder) in
        [(0o077, 0o600, 0o700), (0o002, 0o664, 0o775), (0o027, 0o640, 0o750), (0, 0o666, 0o777)]
    {
        let bench = Bench::with(&ToolOptions { umask: Some(umask), ..ToolOptions::default() });
        let written = bench.call("fs.write", &json!({"path": "a/b", "content": "x"})).await;
        assert!(!is_failed(&written), "{written:?}");
        bench.command("mkdir c; touch c/d").await;
        let modes = ["a/b", "c/d", "a", "c"].map(|name| mode(&bench, name));
        assert_eq!(modes, [file, file, folder, folder], "{umask:o}");
    }
}

#[tokio::test]
async fn umask_does_not_change_existing_permission_bits_or_setgid_folders() {
    let bench = Bench::with(&ToolOptions { umask: Some(0o077), ..ToolOptions::default() });
    let set = |name: &str, bits| {
        let path = bench.folder.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    };
    fs::create_dir(bench.folder.path().join("shared")).unwrap();
    set("shared", 0o2770);
    fs::write(bench.folder.path().join("shared/old"), "").unwrap();
    set("shared/old", 0o644);
    bench.call("fs.read", &json!({"path": "shared/old"})).await;
    for path in ["shared/old", "shared/new/file"] {
        let written = bench.call("fs.write", &json!({"path": path, "content": "x"})).await;
        assert!(!is_failed(&written), "{written:?}");
    }
    assert_eq!(mode(&bench, "shared/old"), 0o644);
    assert_eq!(mode(&bench, "shared/new"), 0o2700);
    assert_eq!(mode(&bench, "shared/new/file"), 0o600);
}
