//! Runs a command on trial: `at=FOLDER site=FOLDER keep|discard|recover … -- COMMAND`, and tells what
//! it changed. `ops` runs a program of file operations in place of a command.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant, SystemTime},
};

use gnoma_sandbox::{
    Policy, SessionSandbox, Support, launcher,
    layer::{Changes, Layer, Site, known_difference},
};

/// What the arguments asked for.
#[derive(Default)]
struct Wishes {
    at: PathBuf,
    site: PathBuf,
    keep: bool,
    recover: bool,
    /// Programs of file operations come on standard input.
    lines: bool,
    bare: bool,
    times: u32,
}

pub(crate) fn main(args: &mut impl Iterator<Item = String>) -> ExitCode {
    let mut wishes = Wishes { times: 1, ..Wishes::default() };
    for arg in args.by_ref().take_while(|arg| arg != "--") {
        let (key, value) = arg.split_once('=').unwrap_or((&arg, ""));
        match key {
            "at" => wishes.at = value.into(),
            "site" => wishes.site = value.into(),
            "keep" => wishes.keep = true,
            "recover" => wishes.recover = true,
            "lines" => wishes.lines = true,
            "bare" => wishes.bare = true,
            "times" => wishes.times = value.parse().unwrap_or(1),
            _ => {}
        }
    }
    let command: Vec<String> = args.collect();
    match wishes.run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("error {why}"));
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) {
    writeln!(io::stdout(), "{line}").ok();
    io::stdout().flush().ok();
}

impl Wishes {
    fn run(&self, command: &[String]) -> Result<(), String> {
        if self.bare {
            return self.bare(command);
        }
        let walls = SessionSandbox::new(launcher::ITSELF.into(), &Support::detect());
        let site = Site::find_usable(&self.at, std::slice::from_ref(&self.site), &walls)
            .map_err(|error| error.to_string())?;
        if self.recover {
            for recovered in site.recover_layers().map_err(|error| error.to_string())? {
                say(&format!("recovered {recovered:?}"));
            }
            return Ok(());
        }
        if self.lines {
            let own = std::env::current_exe().map_err(|error| error.to_string())?;
            for program in programs() {
                let mut command = vec![own.display().to_string(), "ops".to_owned()];
                command.extend(program);
                if let Err(why) = self.once(&site, &walls, &command) {
                    say(&format!("error {why}"));
                }
                say("done");
            }
            return Ok(());
        }
        for _ in 0..self.times {
            self.once(&site, &walls, command)?;
        }
        Ok(())
    }

    fn once(&self, site: &Site, walls: &SessionSandbox, command: &[String]) -> Result<(), String> {
        let began = Instant::now();
        let mut layer =
            site.create_layer(vec![self.at.clone()]).map_err(|error| error.to_string())?;
        let (program, args) = command.split_first().ok_or("no command")?;
        let policy = Policy {
            writable: vec![self.at.clone()],
            overlays: layer.overlays(),
            alone: true,
            ..Policy::default()
        };
        let mut walled = walls.command(program, args, &policy);
        let output = walled.current_dir(&self.at).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let ran = began.elapsed();
        let text = String::from_utf8_lossy(&output.stderr);
        if let Some(difference) = known_difference(&text, output.status.code()) {
            say(&format!("difference {difference:?}"));
        }
        if !output.status.success() {
            say(&format!("failed {:?} {text}", output.status));
        }
        let changes = layer.changes().map_err(|error| error.to_string())?;
        tell(&changes);
        let listed = began.elapsed();
        self.settle(&mut layer, &changes)?;
        drop(layer);
        let all = [ran, listed, began.elapsed()].map(|took: Duration| took.as_micros());
        if self.times > 1 {
            say(&format!("took {all:?}"));
        }
        Ok(())
    }

    fn settle(&self, layer: &mut Layer, changes: &Changes) -> Result<(), String> {
        if !self.keep {
            return Ok(());
        }
        say("keeping");
        let began = Instant::now();
        layer.apply_changes(changes, &|_| true).map_err(|error| error.to_string())?;
        say(&format!("kept {} in {} us", changes.list.len(), began.elapsed().as_micros()));
        Ok(())
    }

    fn bare(&self, command: &[String]) -> Result<(), String> {
        let (program, args) = command.split_first().ok_or("no command")?;
        let mut bare = Command::new(program);
        let status = bare.args(args).current_dir(&self.at).stdin(Stdio::null()).status();
        status.map(drop).map_err(|error| error.to_string())
    }
}

pub(crate) fn tell(changes: &Changes) {
    for change in &changes.list {
        let (kind, node) = (change.kind(), change.node());
        let from = change.moved_from().map(|path| format!(" from {}", path.display()));
        let from = from.unwrap_or_default();
        say(&format!("{kind:?} {node:?} {}{from}", change.path().display()));
    }
    for path in &changes.conflicts {
        say(&format!("conflict {}", path.display()));
    }
    for difference in &changes.differences {
        say(&format!("difference {difference:?}"));
    }
}

/// Runs a program of file operations, one an argument: `write a/b text`. What fails is told and skipped.
pub(crate) fn ops(args: &mut impl Iterator<Item = String>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for line in args {
        let words: Vec<_> = line.split(' ').collect();
        if let Err(error) = op(&words)
            && error.kind() == io::ErrorKind::CrossesDevices
        {
            writeln!(io::stderr(), "{line}: {error}").ok();
            code = ExitCode::FAILURE;
        }
    }
    code
}

/// Programs on standard input, a line each, their operations apart by tabs.
fn programs() -> impl Iterator<Item = Vec<String>> {
    let lines = io::stdin().lines().map_while(Result::ok);
    lines.map(|line| line.split('\t').map(str::to_owned).collect())
}

/// Runs all that come, where it stands.
pub(crate) fn ops_lines() -> ExitCode {
    for program in programs() {
        ops(&mut program.into_iter());
        say("done");
    }
    ExitCode::SUCCESS
}

fn op(words: &[&str]) -> io::Result<()> {
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let path = Path::new(word(1));
    match word(0) {
        "write" => fs::write(path, word(2)),
        "append" => fs::OpenOptions::new().append(true).open(path)?.write_all(word(2).as_bytes()),
        "cut" => fs::OpenOptions::new().write(true).open(path)?.set_len(1),
        "open" => fs::OpenOptions::new().read(true).write(true).open(path).map(drop),
        "remove" => fs::remove_file(path),
        "rmdir" => fs::remove_dir(path),
        "rmtree" => fs::remove_dir_all(path),
        "mkdir" => fs::create_dir(path),
        "mkdirs" => fs::create_dir_all(path),
        "rename" => fs::rename(path, word(2)),
        "link" => fs::hard_link(path, word(2)),
        "symlink" => symlink(path, word(2)),
        "chmod" => {
            let mode = u32::from_str_radix(word(2), 8).unwrap_or(0o644);
            fs::set_permissions(path, fs::Permissions::from_mode(mode))
        }
        "touch" => {
            let seconds = word(2).parse().unwrap_or(1);
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
            fs::OpenOptions::new().write(true).open(path)?.set_modified(time)
        }
        // As editors do it.
        "save" => {
            let next = path.with_extension("swp");
            fs::write(&next, word(2))?;
            fs::rename(next, path)
        }
        _ => Ok(()),
    }
}

/// Works in a view of the workspace from outside all name spaces, and tells what is where afterwards.
pub(crate) fn view(args: &mut impl Iterator<Item = String>) -> ExitCode {
    let (Some(at), Some(site)) = (args.next(), args.next()) else { return ExitCode::FAILURE };
    match in_view(Path::new(&at), Path::new(&site)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say(&format!("error {why}"));
            ExitCode::FAILURE
        }
    }
}

fn in_view(at: &Path, site: &Path) -> Result<(), String> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let walls = SessionSandbox::new(launcher::ITSELF.into(), &Support::detect());
    let layer = Site::in_folder(site.to_owned()).create_layer(vec![at.to_owned()]);
    let layer = layer.map_err(|error| text(&error))?;
    let view = walls.open_view(&layer.overlays().remove(0)).map_err(|error| text(&error))?;
    // It outlives those who made it.
    drop(walls);
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC;
    let mode = Mode::RUSR | Mode::WUSR;
    let opened = openat(&view, "a/f", flags, mode).map_err(|error| text(&error))?;
    fs::File::from(opened).write_all(b"in view\n").map_err(|error| text(&error))?;
    let read = |folder: &dyn Fn() -> rustix::io::Result<std::os::fd::OwnedFd>| {
        let file = folder().map_err(|error| text(&error))?;
        io::read_to_string(fs::File::from(file)).map_err(|error| text(&error))
    };
    let seen = read(&|| openat(&view, "a/f", OFlags::RDONLY, Mode::empty()))?;
    let real = read(&|| openat(CWD, at.join("a/f"), OFlags::RDONLY, Mode::empty()))?;
    say(&format!("view {} real {}", seen.trim(), real.trim()));
    tell(&layer.changes().map_err(|error| text(&error))?);
    Ok(())
}
