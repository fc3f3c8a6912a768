//! An HTTP/1.1 server on the loopback interface that answers by a script and notes what it saw.
//!
//! It can cut an answer anywhere, slow it down, and end it in every way a network can. It is no
//! general server: no TLS, no pipelining, no routing beyond what a script decides.

mod connection;
mod reply;
mod request;
mod state;
mod vendor;

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinSet,
};

pub use reply::{End, Gate, Pace, Reply, ReplyBody};
pub use request::Request;
pub use vendor::{Reaction, Vendor};

use crate::lock_ignoring_poison;
use state::ServerState;

/// Bytes the kernel may hold for a client that does not read: small, so that back-pressure shows.
const SEND_BUFFER_BYTES: u32 = 64 << 10;

/// Connections the kernel may hold before they are accepted.
const BACKLOG: u32 = 128;

/// A running server. Dropping it ends every connection.
pub struct Server {
    address: SocketAddr,
    shared: Arc<ServerState>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Starts a server whose replies `script` decides, on a free port.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState {
            respond: Box::new(script),
            requests: Mutex::default(),
            connections: AtomicUsize::new(0),
            bytes_sent: AtomicU64::new(0),
            clients_gone: watch::Sender::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_connections(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// Starts a server that gives each request the next reply, and status 500 when none is left.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn start_with_replies(replies: impl IntoIterator<Item = Reply>) -> io::Result<Self> {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::start(move |_| {
            let next = lock_ignoring_poison(&replies).pop_front();
            next.unwrap_or_else(|| Reply::text(500, "the script has no reply left"))
        })
    }

    /// Starts a server that answers by path (the query left out), and with status 404 elsewhere.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn by_path<P: Into<String>>(
        routes: impl IntoIterator<Item = (P, Reply)>,
    ) -> io::Result<Self> {
        let routes: Vec<(String, Reply)> =
            routes.into_iter().map(|(path, reply)| (path.into(), reply)).collect();
        Self::start(move |request| {
            let found = routes.iter().find(|(path, _)| path == request.path());
            found.map_or_else(
                || Reply::text(404, "the script has no such path"),
                |(_, reply)| reply.clone(),
            )
        })
    }

    /// An address at which nobody listens: it was free a moment ago.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn unused_address() -> io::Result<String> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        Ok(format!("http://{}", listener.local_addr()?))
    }

    /// Returns the address where the server listens, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, in the order in which they were complete.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock_ignoring_poison(&self.shared.requests).clone()
    }

    /// Returns the number of connections that were accepted.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Bytes that the sockets have taken so far, HTTP framing included.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.shared.bytes_sent.load(Ordering::SeqCst)
    }

    /// Returns the number of answers that ended because the client closed the connection.
    #[must_use]
    pub fn clients_gone(&self) -> usize {
        *self.shared.clients_gone.borrow()
    }

    /// Waits until a client has closed its connection in the middle of an answer.
    pub async fn client_gone(&self) {
        let mut gone = self.shared.clients_gone.subscribe();
        // The sender lives in `self.shared`, so waiting cannot fail.
        drop(gone.wait_for(|count| *count > 0).await);
    }
}

/// Accepts connections for ever; owns their tasks.
async fn accept_connections(listener: TcpListener, shared: Arc<ServerState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                shared.connections.fetch_add(1, Ordering::SeqCst);
                connections.spawn(connection::serve_connection(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

#[cfg(test)]
mod tests;
