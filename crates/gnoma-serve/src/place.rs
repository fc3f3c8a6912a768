//! Where the socket lies, and who listens there: one server at a time.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use tokio::net::{UnixListener, UnixStream};

/// The mode of the folder: only the user may open it.
const FOLDER_MODE: u32 = 0o700;
/// The mode of the socket: only the user may connect.
const SOCKET_MODE: u32 = 0o600;
/// Most bytes of what the lock's file says of its holder.
const MAX_HOLDER_BYTES: u64 = 32;
/// Longest path that a socket can have on every system.
const MAX_PATH_BYTES: usize = 100;

/// The reason why the socket's place cannot be used.
#[derive(thiserror::Error)]
pub enum PlaceError {
    /// Another server listens there.
    #[error("a gnoma server is already running (process {pid})")]
    Taken {
        /// The process id of the other server, as it gave it itself.
        pid: String,
    },
    /// The folder is not the user's alone.
    #[error("`{}` is not a folder of yours that nobody else may open (mode 0700)", .0.display())]
    NotOwn(PathBuf),
    /// The path is too long for a socket.
    #[error("`{}` is too long for a socket; set XDG_RUNTIME_DIR to a shorter folder", .0.display())]
    TooLong(PathBuf),
    /// The system refused something.
    #[error("`{}`: {source}", path.display())]
    Io {
        /// The path that was to be used.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

gnoma_core::debug_as_display!(PlaceError);

/// The folder of a user's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
}

/// The right to listen at a place, as long as it lives.
#[derive(Debug)]
pub struct SocketClaim {
    /// The listener on the socket.
    pub listener: UnixListener,
    socket: PathBuf,
    /// The system lets go of the lock when the process ends, however it ends.
    _lock: File,
}

impl Place {
    /// `$XDG_RUNTIME_DIR/gnoma`, or a folder of the user's in the folder for temporary files.
    #[must_use]
    pub fn from_dirs(runtime_dir: Option<&str>, temporary_dir: Option<&str>) -> Self {
        let folder = match runtime_dir.map(Path::new).filter(|dir| dir.is_absolute()) {
            Some(dir) => dir.join("gnoma"),
            None => {
                let temporary = temporary_dir.map(Path::new).filter(|dir| dir.is_absolute());
                let user = rustix::process::geteuid().as_raw();
                temporary.unwrap_or(Path::new("/tmp")).join(format!("gnoma-{user}"))
            }
        };
        Self { folder }
    }

    /// Returns the path of the socket's file.
    #[must_use]
    pub fn socket_path(&self) -> PathBuf {
        self.folder.join("server.sock")
    }

    /// The folder, which holds nothing but the server's files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that the folder is the user's alone.
    ///
    /// # Errors
    /// [`PlaceError::NotOwn`], or it is not there.
    pub fn check_ownership(&self) -> Result<(), PlaceError> {
        let facts = fs::symlink_metadata(&self.folder).map_err(|error| self.io_error(error))?;
        let own = facts.is_dir()
            && facts.uid() == rustix::process::geteuid().as_raw()
            && facts.mode() & 0o077 == 0;
        if own { Ok(()) } else { Err(PlaceError::NotOwn(self.folder.clone())) }
    }

    /// The process id of the server that listens, as the system says it; also of one that is stopped.
    /// Must be called within a runtime.
    pub async fn server_pid(&self) -> Option<i32> {
        self.check_ownership().ok()?;
        UnixStream::connect(self.socket_path()).await.ok()?.peer_cred().ok()?.pid()
    }

    /// Makes the folder where it is missing, takes the place and listens. What a server left that died
    /// is taken over; the lock says whether it did.
    ///
    /// # Errors
    /// Another server runs, or the folder cannot be used. Must be called within a runtime.
    pub fn listen(&self) -> Result<SocketClaim, PlaceError> {
        let socket = self.socket_path();
        if socket.as_os_str().len() > MAX_PATH_BYTES {
            return Err(PlaceError::TooLong(socket));
        }
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.folder);
        made.map_err(|error| self.io_error(error))?;
        self.check_ownership()?;
        let lock = self.lock()?;
        let io = |source| PlaceError::Io { path: socket.clone(), source };
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
            _ => (),
        }
        // Nobody else can enter the folder, so that the time before the mode is set does no harm.
        let listener = UnixListener::bind(&socket).map_err(io)?;
        fs::set_permissions(&socket, Permissions::from_mode(SOCKET_MODE)).map_err(io)?;
        Ok(SocketClaim { listener, socket, _lock: lock })
    }

    fn lock(&self) -> Result<File, PlaceError> {
        let path = self.folder.join("server.lock");
        let io = |source: io::Error| PlaceError::Io { path: path.clone(), source };
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(SOCKET_MODE)
            .open(&path);
        let mut file = options.map_err(io)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let _unread = (&file).take(MAX_HOLDER_BYTES).read_to_string(&mut pid);
            return Err(PlaceError::Taken { pid: pid.trim().to_owned() });
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(io)?;
        Ok(file)
    }

    fn io_error(&self, source: io::Error) -> PlaceError {
        PlaceError::Io { path: self.folder.clone(), source }
    }
}

impl Drop for SocketClaim {
    fn drop(&mut self) {
        // While the lock is held: the next server's socket is not there yet.
        let _gone = fs::remove_file(&self.socket);
    }
}
