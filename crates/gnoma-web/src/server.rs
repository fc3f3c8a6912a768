//! Accepts connections and serves requests, within limits.

use std::{collections::VecDeque, convert::Infallible, sync::Arc};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};

use crate::{
    access::{Access, Admission},
    handle::{Handler, Site},
    limits::{
        ACCEPT_PAUSE, HEAD_PATIENCE, MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_HEADERS, TOKEN_LOOK,
    },
    stall::StallTimeout,
};
use gnoma_core::task::box_future;

/// Serves whoever connects, until it is dropped. The listener must be one of a loopback address; who may
/// connect from elsewhere is not known here.
pub async fn serve_site(listener: &TcpListener, site: Arc<dyn Site>, access: Arc<Access>) {
    let handler = Handler::new(site, Arc::clone(&access));
    let mut connections = JoinSet::new();
    let mut open = OpenConnections::default();
    let mut looks = interval(TOKEN_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if open.make_room() => {
                    let admission = Admission::default();
                    let attending = serve_client(stream, handler.clone(), admission.clone());
                    open.0.push_back((connections.spawn(box_future(attending)), admission));
                }
                // One too many: it is closed.
                Ok(_) => (),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => (),
            _ = looks.tick() => access.refresh_keys(),
        }
    }
}

/// The connections that are open, the oldest first.
#[derive(Default)]
struct OpenConnections(VecDeque<(AbortHandle, Admission)>);

impl OpenConnections {
    /// Makes room for one more. Where there is none, the oldest on which nobody has shown a token yet is closed: such
    /// connections cost their client nothing, and must not keep people out. Returns whether there is room.
    fn make_room(&mut self) -> bool {
        self.0.retain(|(task, _)| !task.is_finished());
        if self.0.len() < MAX_CONNECTIONS {
            return true;
        }
        let Some(oldest) = self.0.iter().position(|(_, admission)| !admission.is_given()) else {
            return false;
        };
        if let Some((task, _)) = self.0.remove(oldest) {
            task.abort();
        }
        true
    }
}

async fn serve_client(stream: TcpStream, handler: Handler, admission: Admission) {
    // Small events are told at once.
    let _unsupported = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let handler = handler.clone();
        request.extensions_mut().insert(admission.clone());
        async move { Ok::<_, Infallible>(handler.answer_request(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(StallTimeout::new(stream)), service)
        .await;
    // A client that leaves in the middle is its own affair.
    let _left = served;
}
