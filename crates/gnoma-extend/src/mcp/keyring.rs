//! The keyring of the person's desktop (Secret Service), through the program `secret-tool`, if both exist. A
//! library for it would bring D-Bus into the program.

use std::{ffi::OsString, path::PathBuf, process::Stdio, time::Duration};

use gnoma_core::duration;

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
    /// Why it is not there.
    pub(super) async fn store(&self, server: &str, secret: &[u8]) -> Result<(), String> {
        let label = format!("--label=gnoma: {server}");
        self.run_secret_tool(&["store", &label], server, secret).await.map(drop)
    }

    /// The secret that is there for `server`.
    ///
    /// # Errors
    /// It is not, or cannot be read.
    pub(super) async fn look_up(&self, server: &str) -> Result<Vec<u8>, String> {
        self.run_secret_tool(&["lookup"], server, b"").await
    }

    /// Deletes the secret of a server from the keyring.
    ///
    /// # Errors
    /// Why it may still be there.
    pub(super) async fn clear(&self, server: &str) -> Result<(), String> {
        self.run_secret_tool(&["clear"], server, b"").await.map(drop)
    }

    async fn run_secret_tool(
        &self,
        what: &[&str],
        server: &str,
        input: &[u8],
    ) -> Result<Vec<u8>, String> {
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
            .map_err(|error| format!("`{PROGRAM}` cannot be started: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let work = async {
            if let Some(mut stdin) = stdin {
                // Who does not read it, does not need it.
                let _unread = stdin.write_all(input).await;
            }
            let mut said = Vec::new();
            if let Some(stdout) = stdout {
                let _broken = stdout.take(MAX_SECRET_BYTES).read_to_end(&mut said).await;
            }
            (child.wait().await, said)
        };
        let done = timeout(PATIENCE, work).await;
        let (status, said) = done.map_err(|_late| {
            format!("the keyring did not answer within {}", duration::format_duration(PATIENCE))
        })?;
        let is_done = status.is_ok_and(|status| status.success());
        is_done.then_some(said).ok_or_else(|| "the keyring is locked, or denied access".to_owned())
    }
}
