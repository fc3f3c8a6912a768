//! Times of checkpoints on a large tree, beside git's on the same tree in the same run.
//!
//! `cargo run --release --example bench_checkpoints -- [FILES] [FOLDER]`

use std::{
    error::Error,
    fs,
    io::{Write, stdout},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::Instant,
};

use gnoma_store::checkpoint::{Conflict, Options, Vault, Workspace};

type Outcome<T> = Result<T, Box<dyn Error>>;

const FILES_A_FOLDER: usize = 25;
const REPEATS: usize = 15;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let files: usize = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = parent.join(format!("bench-checkpoints-{}", std::process::id()));
    let measured = measure(&folder, files);
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure(folder: &Path, files: usize) -> Outcome<()> {
    let root = folder.join("work");
    make_tree(&root, files)?;
    git(&root, &["init", "-q"])?;
    let begun = Instant::now();
    git(&root, &["add", "-A"])?;
    git(&root, &["-c", "user.name=n", "-c", "user.email=a@b", "commit", "-qm", "all"])?;
    say("git add -A && git commit, first", begun)?;

    let vault = Vault::open(&folder.join("vault"), Options::default())?;
    let workspace = vault.open_workspace(&root)?;
    let begun = Instant::now();
    workspace.scan_baseline(&AtomicBool::new(false))?;
    say("baseline", begun)?;
    writeln!(stdout(), "  watched: {}", workspace.is_watched())?;
    workspace.take_snapshot("settle")?;
    for count in [0, 1, 10, 100] {
        let ours = median(|round| {
            touch(&root, files, count, round)?;
            let begun = Instant::now();
            workspace.take_snapshot("x")?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        })?;
        let theirs = median(|round| {
            touch(&root, files, count, round + REPEATS)?;
            let begun = Instant::now();
            git(&root, &["add", "-A"])?;
            git(&root, &["-c", "user.name=n", "-c", "user.email=a@b", "stash", "create"])?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        })?;
        workspace.take_snapshot("after git")?;
        writeln!(
            stdout(),
            "{count:>4} changed: snapshot {ours:8.2} ms, git {theirs:8.2} ms, ratio {:.1}",
            theirs / ours
        )?;
    }
    restore(&workspace, &root, files)?;
    drop(workspace);
    without_waiting(&root, folder, files)?;
    reopen(&root, folder)?;
    writeln!(stdout(), "peak memory: {}", peak_memory()?)?;
    writeln!(stdout(), "vault: {} kB", vault.collect_garbage()?.kept_bytes / 1024)?;
    Ok(())
}

/// The same without waiting for the disk: what is left is the work itself.
fn without_waiting(root: &Path, folder: &Path, files: usize) -> Outcome<()> {
    let options = Options { durable: false, ..Options::default() };
    let workspace = Vault::open(&folder.join("vault"), options)?.open_workspace(root)?;
    workspace.take_snapshot("settle")?;
    for count in [1, 10, 100] {
        let ours = median(|round| {
            touch(root, files, count, round + 3 * REPEATS)?;
            let begun = Instant::now();
            workspace.take_snapshot("x")?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        })?;
        writeln!(stdout(), "{count:>4} changed, not waiting for the disk: {ours:8.2} ms")?;
    }
    Ok(())
}

fn restore(workspace: &Workspace, root: &Path, files: usize) -> Outcome<()> {
    let id = workspace.take_snapshot("before")?.id;
    for count in [1, 100, 5_000] {
        touch(root, files, count, 77)?;
        let begun = Instant::now();
        let restored = workspace.restore(&id, Conflict::KeepTheirs)?;
        say(&format!("restore, {} files written", restored.written), begun)?;
    }
    Ok(())
}

fn reopen(root: &Path, folder: &Path) -> Outcome<()> {
    let begun = Instant::now();
    let fresh = Vault::open(&folder.join("vault"), Options::default())?;
    say("open the vault again", begun)?;
    let begun = Instant::now();
    let workspace = fresh.open_workspace(root)?;
    workspace.take_snapshot("first of a new run")?;
    say("first snapshot of a new run", begun)?;
    drop(workspace);
    let options = Options { watch: false, ..Options::default() };
    let workspace = Vault::open(&folder.join("vault"), options)?.open_workspace(root)?;
    workspace.take_snapshot("settle")?;
    let walk = median(|_| {
        let begun = Instant::now();
        workspace.take_snapshot("walk")?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    })?;
    writeln!(stdout(), "nothing changed, full walk: {walk:.2} ms")?;
    Ok(())
}

fn make_tree(root: &Path, files: usize) -> Outcome<()> {
    for number in 0..files {
        let path = file(root, number);
        if number % FILES_A_FOLDER == 0 {
            fs::create_dir_all(path.parent().ok_or("no parent")?)?;
        }
        let line = format!("fn number_{number}(value: u32) -> u32 {{ value + {number} }}\n");
        fs::write(path, line.repeat(4 + number % 120))?;
    }
    Ok(())
}

fn file(root: &Path, number: usize) -> PathBuf {
    let folder = number / FILES_A_FOLDER;
    root.join(format!("part{}/module{folder}/file{number}.rs", folder / 20))
}

fn touch(root: &Path, files: usize, count: usize, round: usize) -> Outcome<()> {
    for step in 0..count {
        let number = (step * 7_919 + round * 131) % files;
        let mut open = fs::File::options().append(true).open(file(root, number))?;
        writeln!(open, "// {round}")?;
    }
    Ok(())
}

fn median(mut measure: impl FnMut(usize) -> Outcome<f64>) -> Outcome<f64> {
    let mut times = (0..REPEATS).map(&mut measure).collect::<Outcome<Vec<_>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(REPEATS / 2).copied().unwrap_or_default())
}

fn git(root: &Path, arguments: &[&str]) -> Outcome<()> {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("git {arguments:?} failed").into()) }
}

fn say(what: &str, begun: Instant) -> Outcome<()> {
    writeln!(stdout(), "{what}: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3)?;
    Ok(())
}

fn peak_memory() -> Outcome<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    Ok(line.trim_start_matches("VmHWM:").trim().to_owned())
}
