//! The keyring of the person's desktop (Secret Service), through the program `secret-tool`, if both exist. A
//! library for it would bring D-Bus into the program.

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, time::Duration};

use gnoma_core::duration::format_duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
    time::timeout,
};

/// The program that accesses the keyring.
const PROGRAM: &str = "secret-tool";
/// The variable that shows whether there is a session whose keyring can be asked.
const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";
/// The variables that it needs, to find the keyring and to ask the person to unlock it.
const VARIABLES: [&str; 9] = [
    BUS,
    "DISPLAY",
    "HOME",
    "LANG",
    "PATH",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];
/// Longest wait: a person may have to unlock the keyring.
const PATIENCE: Duration = Duration::from_secs(60);
/// Largest secret, in bytes.
const MAX_SECRET_BYTES: u64 = 1 << 20;

/// The reason why the keyring did not do what it was asked.
#[derive(thiserror::Error)]
pub(super) enum KeyringError {
    /// The program that accesses it cannot be started.
    #[error("`{PROGRAM}` cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    /// The keyring did not answer in time.
    #[error("the keyring did not answer within {}", format_duration(*.0))]
    TimedOut(Duration),
    /// The keyring is locked, or denied access.
    #[error("the keyring is locked, or denied access")]
    Denied,
}

gnoma_core::debug_as_display!(KeyringError);

/// The keyring of the person's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    program: PathBuf,
    variables: Vec<(String, String)>,
}

impl Keyring {
    /// The keyring of a session with these variables, if it has one.
    #[must_use]
    pub fn from_variables(variables: &[(String, String)]) -> Option<Self> {
        let named = |wanted: &str| {
            let found = variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| value.as_str())
        };
        named(BUS)?;
        let folders = std::env::split_paths(named("PATH")?).filter(|folder| folder.is_absolute());
        let program = folders.map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())?;
        let needed = variables.iter().filter(|(name, _)| VARIABLES.contains(&&**name));
        Some(Self { program, variables: needed.cloned().collect() })
    }

    /// Puts a secret there, in the place of what was there for `server`.
    ///
    /// # Errors
    /// The keyring cannot be asked, or denies it.
    pub(super) async fn store(&self, server: &str, secret: &[u8]) -> Result<(), KeyringError> {
        let label = format!("--label=gnoma: {server}");
        self.run_secret_tool(&["store", &label], server, secret).await.map(drop)
    }

    /// The secret that is there for `server`.
    ///
    /// # Errors
    /// The keyring has no such secret, cannot be asked, or denies it.
    pub(super) async fn look_up(&self, server: &str) -> Result<Vec<u8>, KeyringError> {
        self.run_secret_tool(&["lookup"], server, b"").await
    }

    /// Deletes the secret of a server from the keyring.
    ///
    /// # Errors
    /// The keyring cannot be asked, or denies it: the secret may still be there.
    pub(super) async fn clear(&self, server: &str) -> Result<(), KeyringError> {
        self.run_secret_tool(&["clear"], server, b"").await.map(drop)
    }

    async fn run_secret_tool(
        &self,
        what: &[&str],
        server: &str,
        input: &[u8],
    ) -> Result<Vec<u8>, KeyringError> {
        let attributes = ["application", "gnoma", "kind", "mcp-tokens", "server", server];
        let arguments = what.iter().chain(&attributes).map(OsString::from);
        let mut child = Command::new(&self.program)
            .args(arguments)
            .env_clear()
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(KeyringError::NotStarted)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let work = async {
            if let Some(mut stdin) = stdin {
                // A program that ends without reading its input does not need it.
                let _unread = stdin.write_all(input).await;
            }
            let mut said = Vec::new();
            if let Some(stdout) = stdout {
                let _broken = stdout.take(MAX_SECRET_BYTES).read_to_end(&mut said).await;
            }
            (child.wait().await, said)
        };
        let done = timeout(PATIENCE, work).await;
        let (status, said) = done.map_err(|_late| KeyringError::TimedOut(PATIENCE))?;
        let is_done = status.is_ok_and(|status| status.success());
        is_done.then_some(said).ok_or(KeyringError::Denied)
    }
}
