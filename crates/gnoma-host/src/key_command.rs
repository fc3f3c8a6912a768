//! Keys that a command prints, such as a password manager's. It is the person's own command, outside
//! any sandbox; a project's file cannot set it unless the project is trusted.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use gnoma_config::{env::bare_key, settings::Provider};
use gnoma_core::{Secret, duration, protocol::Environment};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::Notices;

/// The time a command may take: the user may have to unlock something.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time a command may take before a notice says that it is waited for.
const SILENCE: Duration = Duration::from_secs(2);
/// Most that is read of what it prints.
const MAX_BYTES: u64 = 16 << 10;

/// The reason why a command printed no key. Its text follows the name of the command.
#[derive(thiserror::Error)]
pub(crate) enum KeyCommandError {
    #[error("cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    #[error("took longer than {}", duration::format_duration(*limit))]
    TooSlow { limit: Duration },
    #[error("was lost: {0}")]
    Lost(#[source] io::Error),
    #[error("failed ({status}){}{complaint}", if complaint.is_empty() { "" } else { ": " })]
    Failed { status: ExitStatus, complaint: String },
    #[error("printed nothing")]
    NoOutput,
}

gnoma_core::debug_as_display!(KeyCommandError);

/// Gets the keys that commands print, for providers that have no other.
pub(crate) fn fill_keys(provider: &mut Provider, environment: &Environment, notices: &Notices) {
    for (name, command) in &provider.key_commands {
        if provider.api_keys.contains_key(name) {
            continue;
        }
        let source = format!("provider.key_commands.{name}");
        match run_key_command(command, environment, &|| {
            notices.info(describe_wait(command, &source));
        }) {
            Ok(key) => {
                let key = Secret::new(bare_key(key.expose()).to_owned());
                provider.api_keys.insert(name.clone(), key);
            }
            Err(why) => notices.warning(format_args!(
                "no key for `{name}`: the command in `provider.key_commands.{name}` {why}"
            )),
        }
    }
}

/// Says that a command is waited for. `source`: what names it.
pub(crate) fn describe_wait(command: &str, source: &str) -> String {
    let most = duration::format_duration(PATIENCE);
    format!("waiting for `{command}` ({source}), up to {most}")
}

/// Returns the first line that `command` prints. `on_silence` is called once if it takes long.
///
/// # Errors
/// See [`KeyCommandError`].
pub(crate) fn run_key_command(
    command: &str,
    environment: &Environment,
    on_silence: &dyn Fn(),
) -> Result<Secret<String>, KeyCommandError> {
    key_within((SILENCE, PATIENCE), command, environment, on_silence)
}

fn key_within(
    (silence, patience): (Duration, Duration),
    command: &str,
    environment: &Environment,
    on_silence: &dyn Fn(),
) -> Result<Secret<String>, KeyCommandError> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(environment.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own, so that all that it starts can be ended with it.
        .process_group(0)
        .spawn()
        .map_err(KeyCommandError::NotStarted)?;
    let pid = Pid::from_child(&child);
    let (said, hears) = mpsc::channel();
    thread::spawn(move || said.send((read_output(&mut child), child.wait())));
    let heard = hears.recv_timeout(silence.min(patience)).or_else(|_| {
        on_silence();
        hears.recv_timeout(patience.saturating_sub(silence))
    });
    let Ok(((out, complaint), status)) = heard else {
        kill_process_group(pid, Signal::KILL).ok();
        return Err(KeyCommandError::TooSlow { limit: patience });
    };
    let status = status.map_err(KeyCommandError::Lost)?;
    if !status.success() {
        let last = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(KeyCommandError::Failed { status, complaint: last.trim().to_owned() });
    }
    let line = out.lines().next().unwrap_or_default().trim();
    if line.is_empty() { Err(KeyCommandError::NoOutput) } else { Ok(Secret::new(line.to_owned())) }
}

/// Returns what a program prints to its standard output and to its standard error.
fn read_output(child: &mut Child) -> (String, String) {
    let out = child.stdout.take().map(read_text);
    let complaint = child.stderr.take().map(read_text);
    (out.unwrap_or_default(), complaint.unwrap_or_default())
}

fn read_text(from: impl Read) -> String {
    let mut bytes = Vec::new();
    // What came before an error may be the key.
    from.take(MAX_BYTES).read_to_end(&mut bytes).ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(command: &str) -> Result<String, String> {
        let variables = [("PATH", "/usr/bin:/bin"), ("OF", "mine")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let key = run_key_command(command, &Environment::new(variables.into()), &|| ());
        key.map(|key| key.expose().clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn api_key_command_timeout_kills_its_process_group() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        let command = format!("sleep 100 & echo $! > {}; wait", file.display());
        let environment =
            Environment::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
        let told = std::cell::Cell::new(0);
        let times = (Duration::from_millis(200), Duration::from_secs(1));
        let late = key_within(times, &command, &environment, &|| told.set(told.get() + 1));
        assert_eq!(
            (late.unwrap_err().to_string(), told.get()),
            ("took longer than 1s".to_owned(), 1)
        );
        assert_eq!(
            describe_wait("sleep 60", "provider.key_commands.work"),
            "waiting for `sleep 60` (provider.key_commands.work), up to 30s"
        );
        let number = std::fs::read_to_string(&file).unwrap();
        let place = format!("/proc/{}/stat", number.trim());
        let runs = || std::fs::read_to_string(&place).is_ok_and(|stat| !stat.contains(") Z "));
        let end = std::time::Instant::now() + Duration::from_secs(10);
        while runs() {
            assert!(std::time::Instant::now() < end, "{number} still runs");
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn api_key_command_uses_the_first_output_line_or_reports_the_failure() {
        assert_eq!(asked("echo \" sk-$OF \"; echo user: me"), Ok("sk-mine".to_owned()));
        assert_eq!(asked("true"), Err("printed nothing".to_owned()));
        assert_eq!(asked("exit 3"), Err("failed (exit status: 3)".to_owned()));
        let failed = asked("echo locked >&2; exit 3").unwrap_err();
        assert!(failed.contains("3") && failed.ends_with("locked"), "{failed}");
    }
}
