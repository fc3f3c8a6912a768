//! The HTTP side of a server: where it listens, the token that opens it, and how its clients reach a host,
//! in this process or behind the socket of another one.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use gnoma_core::{
    bounded_file, private_file,
    protocol::{Client, RequestError, RequestErrorKind, SessionSpec},
    random::random_bytes,
    tool::BoxFuture,
};
use gnoma_host::{Folders as _, HostError, Project, live::Host};
use gnoma_serve::ConnectError;
use gnoma_web::{Access, Rights, Site, Token, TokenSource, serve_site};
use tokio::{net::TcpListener, runtime::Handle, task::spawn_blocking};

use crate::{
    commands::{protocol, usage},
    environment::ProcessEnvironment,
    metrics, qr, report, server,
    web_devices::{self, Device},
};

/// The file of the token, in the folder of what is kept: the guard lets no tool read there.
const TOKEN_FILE: &str = "web.token";
/// Most bytes of it that are read.
const MAX_TOKEN_BYTES: u64 = 100;

/// An address that is listened at, and who is let in there. Dropping it closes the address.
pub(crate) struct WebListener {
    listener: TcpListener,
    access: Arc<Access>,
    address: SocketAddr,
    /// The name of a tunnel that leads here.
    tunnel: Option<String>,
    /// The device that the link through the tunnel is for.
    device: Option<Device>,
    token: Token,
}

impl WebListener {
    /// Listens at an address of this machine alone, and lets in at the name of a `tunnel`. `is_private`: nothing may be
    /// saved, so the token is one of this server alone, and no device has one of its own.
    ///
    /// # Errors
    /// The address is not one of this machine, or another program listens there.
    pub(crate) async fn open(
        address: SocketAddr,
        is_private: bool,
        tunnel: Option<String>,
        around: &ProcessEnvironment,
    ) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(remote_access_error(
                address.port(),
                &format!("{address} is not an address of this machine only"),
            )
            .into());
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| address_in_use_error(address, &error))?;
        let address = listener.local_addr()?;
        let (access, token) = if is_private {
            let token = new_token()?;
            (Access::new(EphemeralToken(token.clone()), address), token)
        } else {
            let (stored, token) = StoredToken::open(&around.environment.state_dir(), address)?;
            (Access::new(stored, address), token)
        };
        let access = Arc::new(access.with_tunnel(tunnel.clone()));
        Ok(Self { listener, access, address, tunnel, device: None, token })
    }

    /// Shows the link of a device in place of the person's.
    pub(crate) fn with_device(self, device: Option<Device>) -> Self {
        Self { device, ..self }
    }

    /// Tells the links for browsers.
    pub(crate) fn tell_links(&self) {
        tell_links(self.address, &self.token);
        match (&self.tunnel, &self.device) {
            (Some(_), _) => report::print_line(format_args!("through the tunnel: {}", self.link())),
            (None, Some(_)) => {
                report::print_line(format_args!("for the device:    {}", self.link()));
            }
            (None, None) => (),
        }
    }

    /// The link that a phone would open.
    fn link(&self) -> String {
        let token = match &self.device {
            Some(device) => &device.token(&self.token),
            None => &self.token,
        };
        let token = token.expose();
        match &self.tunnel {
            Some(name) => format!("https://{name}/#t={token}"),
            None => format!("http://{}/#t={token}", self.address),
        }
    }

    /// Shows the link as a QR code.
    pub(crate) fn tell_qr(&self) {
        match qr::draw(&self.link()) {
            Some(code) => report::print_line(format_args!("{}\n{code}", self.link())),
            None => report::print_line("the link is too long for a QR code"),
        }
    }

    /// The address for programs.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub(crate) async fn serve(&self, site: Arc<dyn Site>) {
        serve_site(&self.listener, site, Arc::clone(&self.access)).await;
    }
}

/// Returns the error that says why other machines cannot connect, and how they can reach the page instead.
pub(crate) fn remote_access_error(port: u16, cause: &str) -> HostError {
    let name = machine();
    let remedy = format!(
        "gnoma has no encryption of its own, so it listens on this machine only. On the other machine, run \
         `ssh -N -L {port}:127.0.0.1:{port} {name}` and open the link that `gnoma web` shows there"
    );
    HostError { remedy: Some(remedy), ..HostError::usage(cause) }
}

/// Returns the error that says why a QR code of a link to this machine itself would be of no use.
pub(crate) fn unreachable_link_error() -> HostError {
    let remedy = "name the tunnel that leads here with `--tunnel NAME`; `gnoma web --tunnel` shows how to start one";
    let cause = "`--qr` is for a phone, and without a tunnel the link works on this machine only";
    HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) }
}

/// Programs that make a tunnel from a phone to this machine: what each is run with, and which name it gives.
const TUNNELS: [(&str, &str, &str); 4] = [
    (
        "tailscale",
        "tailscale serve PORT",
        "only your own devices reach it; its name is MACHINE.TAILNET.ts.net",
    ),
    (
        "cloudflared",
        "cloudflared tunnel --url http://127.0.0.1:PORT",
        "the whole internet reaches it and only the link protects it; it prints its name",
    ),
    (
        "ssh",
        "ssh -N -L PORT:127.0.0.1:PORT THIS-MACHINE",
        "run it on the other machine and open the first link there",
    ),
    (
        "socat",
        "socat OPENSSL-LISTEN:8443,fork,reuseaddr,verify=0,cert=CERT.pem,key=KEY.pem TCP:127.0.0.1:PORT",
        "with a certificate that you have, such as one of `tailscale cert`; whoever reaches this machine reaches it, and \
         its name is that of the certificate with :8443",
    ),
];

/// Tells how to reach the page from elsewhere with the programs that are installed. It starts none of them.
pub(crate) fn tell_tunnels(port: u16, around: &ProcessEnvironment) {
    let folders = around.environment.get("PATH").unwrap_or_default();
    let is_there =
        |program: &str| std::env::split_paths(folders).any(|folder| folder.join(program).is_file());
    let (port, host) = (port.to_string(), machine());
    report::print_line("from a phone, run one of these yourself:");
    for (program, command, about) in TUNNELS {
        let missing = if is_there(program) { "" } else { " (not installed)" };
        let command = command.replace("PORT", &port).replace("THIS-MACHINE", &host);
        report::print_line(format_args!("  {command}{missing}\n      {about}"));
    }
    report::print_line("then start `gnoma web --tunnel NAME` with the name, unless it is ssh");
}

fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "this-machine".to_owned() } else { name.trim().to_owned() }
}

fn address_in_use_error(address: SocketAddr, error: &io::Error) -> HostError {
    let cause = format!("cannot listen at {address}: {error}");
    let is_taken = error.kind() == io::ErrorKind::AddrInUse;
    let next = address.port().checked_add(1).filter(|_| is_taken);
    let remedy = next.map(|port| format!("try `gnoma web --port {port}`, or close what uses it"));
    HostError { remedy, ..HostError::usage(cause) }
}

fn tell_links(address: SocketAddr, token: &Token) {
    let link = |token: &Token| format!("http://{address}/#t={}", token.expose());
    report::print_line(format_args!("open in a browser: {}", link(token)));
    report::print_line(format_args!("to watch only:     {}", link(&token.for_watching())));
}

/// A token that is saved nowhere.
#[derive(Debug)]
struct EphemeralToken(Token);

impl TokenSource for EphemeralToken {
    fn current_tokens(&self) -> Vec<(Rights, Token)> {
        self.0.with_watching()
    }
}

/// The token of this person, and those of devices that follow from it. It outlives the server, so that a page goes on when the server is started again,
/// and it is read again once its file is another one, so that new links end the old ones everywhere.
#[derive(Debug)]
struct StoredToken {
    folder: PathBuf,
    address: SocketAddr,
    known: Mutex<KnownTokens>,
}

/// The tokens as they were read last.
#[derive(Debug)]
struct KnownTokens {
    /// The file of the token, and that of the devices.
    marks: [Option<FileMark>; 2],
    token: Option<Token>,
    all: Vec<(Rights, Token)>,
}

impl KnownTokens {
    /// Those of `token` and of the devices in a folder.
    fn new(folder: &Path, marks: [Option<FileMark>; 2], token: Option<Token>) -> Self {
        let all = token.as_ref().map(|token| {
            let devices = web_devices::read_devices(folder);
            let devices = devices.iter().map(|device| (Rights::Steer, device.token(token)));
            token.with_watching().into_iter().chain(devices).collect()
        });
        Self { marks, token, all: all.unwrap_or_default() }
    }
}

/// By what a file is told from another one of its name, and from itself with other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMark {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl FileMark {
    /// That of the file at a path, where there is one.
    fn of_file(path: &Path) -> Option<Self> {
        let facts = fs::metadata(path).ok()?;
        let changed = (facts.ctime(), facts.ctime_nsec());
        Some(Self { device: facts.dev(), inode: facts.ino(), changed })
    }
}

impl StoredToken {
    /// The one in a folder, where there is one, else a new one that is saved there.
    fn open(folder: &Path, address: SocketAddr) -> Result<(Self, Token)> {
        let path = folder.join(TOKEN_FILE);
        let mut marks = Self::file_marks(folder);
        let token = match read_saved_token(&path) {
            Some(token) => token,
            None => {
                let token = new_token()?;
                if let Err(error) = save_token(&path, &token) {
                    let path = path.display();
                    report::print_line(format_args!(
                        "note: the token could not be saved at {path} ({error}); links end with this server"
                    ));
                }
                marks = Self::file_marks(folder);
                token
            }
        };
        let known = KnownTokens::new(folder, marks, Some(token.clone()));
        Ok((Self { folder: folder.to_owned(), address, known: Mutex::new(known) }, token))
    }

    fn file_marks(folder: &Path) -> [Option<FileMark>; 2] {
        [folder.join(TOKEN_FILE), web_devices::devices_file(folder)]
            .map(|path| FileMark::of_file(&path))
    }
}

impl TokenSource for StoredToken {
    fn current_tokens(&self) -> Vec<(Rights, Token)> {
        let marks = Self::file_marks(&self.folder);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.marks != marks {
            let token = read_saved_token(&self.folder.join(TOKEN_FILE));
            match &token {
                Some(token) if known.token.as_ref() != Some(token) => {
                    report::print_line("the links were replaced; reopen pages that were open");
                    tell_links(self.address, token);
                }
                Some(_) => (),
                None => report::print_line("the token's file is gone; nobody can connect any more"),
            }
            *known = KnownTokens::new(&self.folder, marks, token);
        }
        known.all.clone()
    }
}

/// Replaces the token: every link and every page that is open stops working.
///
/// # Errors
/// The new token cannot be saved.
pub(crate) fn renew_token(around: &ProcessEnvironment) -> Result<()> {
    let path = around.environment.state_dir().join(TOKEN_FILE);
    save_token(&path, &new_token()?).map_err(|error| {
        HostError::failure(format!("cannot save a new token at {}: {error}", path.display()))
    })?;
    Ok(())
}

fn read_saved_token(path: &Path) -> Option<Token> {
    Token::parse(bounded_file::read_text(path, MAX_TOKEN_BYTES).ok()??.trim())
}

fn save_token(path: &Path, token: &Token) -> io::Result<()> {
    private_file::replace(path, format!("{}\n", token.expose()).as_bytes())
}

fn new_token() -> Result<Token> {
    Ok(Token::from_random(random_bytes().map_err(|error| HostError::failure(error.to_string()))?))
}

/// The place where the sessions of the page live.
pub(crate) enum SessionBackend {
    /// The sessions live in this process.
    Here(Arc<Host>),
    /// In the server of this user, whichever runs at the time.
    Elsewhere(ProcessEnvironment),
}

/// A program with a page.
pub(crate) struct OwnSite {
    /// The place where the sessions live.
    pub(crate) sessions: SessionBackend,
    /// The specification with which sessions are opened unless the page overrides it.
    pub(crate) spec: SessionSpec,
    /// The project whose ledger the metrics are of, if metrics are offered.
    pub(crate) metrics: Option<Arc<Project>>,
}

impl Site for OwnSite {
    fn program_version(&self) -> String {
        server::name_and_version()
    }

    fn default_folder(&self) -> PathBuf {
        self.spec.folder.clone()
    }

    fn client_name(&self) -> String {
        server::client_name()
    }

    fn api_description(&self) -> Option<String> {
        protocol::openapi_text().ok()
    }

    fn connect_client(&self, name: String) -> BoxFuture<'_, Result<Client, RequestError>> {
        Box::pin(async move {
            match &self.sessions {
                SessionBackend::Here(host) => Ok(host.connect(&name)),
                SessionBackend::Elsewhere(around) => {
                    let place = server::server_place(around);
                    place
                        .check_ownership()
                        .map_err(|error| server_gone_error(&error.to_string()))?;
                    let socket = place.socket_path();
                    gnoma_serve::connect_to_server(&socket, &server::name_and_version(), &name)
                        .await
                        .map_err(|error| match error {
                            ConnectError::Refused(error) => error,
                            error => server_gone_error(&error.to_string()),
                        })
                }
            }
        })
    }

    fn metrics(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async move {
            match (&self.sessions, &self.metrics) {
                (SessionBackend::Here(host), Some(project)) => metrics::read(project, host).await,
                _ => None,
            }
        })
    }

    fn usage_report(&self) -> BoxFuture<'_, Result<String, RequestError>> {
        let (spec, runtime) = (self.spec.clone(), Handle::current());
        let read = spawn_blocking(move || runtime.block_on(usage::read_json(spec)));
        Box::pin(async move {
            let failed = |cause: String| RequestError::new(RequestErrorKind::Failed, cause);
            let read = read.await.map_err(|error| failed(error.to_string()))?;
            read.map_err(|error| failed(error.to_string()))
        })
    }

    fn complete_spec(&self, spec: SessionSpec) -> SessionSpec {
        let own = &self.spec;
        SessionSpec {
            folder: match spec.folder.as_os_str().is_empty() {
                true => own.folder.clone(),
                false => own.folder.join(&spec.folder),
            },
            environment: own.environment.clone(),
            umask: own.umask,
            profile: own.profile.clone(),
            ..spec
        }
    }
}

fn server_gone_error(cause: &str) -> RequestError {
    RequestError::new(RequestErrorKind::Closed, cause)
        .with_remedy("It continues once `gnoma serve` runs again.")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn web_token_file_is_private_and_an_invalid_token_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let address = SocketAddr::from(([127, 0, 0, 1], 4666));
        let (opened, first) = StoredToken::open(&state, address).unwrap();
        assert_eq!(StoredToken::open(&state, address).unwrap().1, first);
        let mode = fs::metadata(state.join(TOKEN_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(opened.current_tokens(), first.with_watching());
        let phone = web_devices::add_device(&state, "phone").unwrap().token(&first);
        assert_eq!(opened.current_tokens()[2], (Rights::Steer, phone));
        web_devices::revoke_device(&state, "phone").unwrap();
        assert_eq!(opened.current_tokens(), first.with_watching());
        fs::write(state.join(TOKEN_FILE), "short").unwrap();
        assert_eq!(opened.current_tokens(), [], "a server that runs lets nobody in");
        let (_, other) = StoredToken::open(&state, address).unwrap();
        assert_ne!(other, first, "what is no token is replaced");
        assert_eq!(opened.current_tokens(), other.with_watching(), "and that is noticed");
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
    }

    #[test]
    fn web_session_uses_the_environment_of_the_program_not_of_the_page() {
        let environment = [("A".to_owned(), "b".to_owned())].into();
        let environment = gnoma_core::protocol::Environment::new(environment);
        let own = SessionSpec { folder: "/work".into(), environment, ..SessionSpec::default() };
        let site = OwnSite {
            sessions: SessionBackend::Here(Arc::new(Host::new(
                gnoma_host::session_opening::Projects::default(),
            ))),
            spec: own,
            metrics: None,
        };
        let spec = site.complete_spec(SessionSpec::default());
        assert_eq!((spec.folder, spec.environment.get("A")), ("/work".into(), Some("b")));
        let spec =
            site.complete_spec(SessionSpec { folder: "/other".into(), ..SessionSpec::default() });
        assert_eq!(spec.folder, PathBuf::from("/other"));
    }
}
