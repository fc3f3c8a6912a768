//! Takes connections and carries requests, within limits.

use std::{convert::Infallible, sync::Arc};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    access::Access,
    handle::{Handler, Site},
    limits::{
        ACCEPT_PAUSE, HEAD_PATIENCE, MAX_CONNECTIONS, MAX_HEAD_BYTES, MAX_HEADERS, TOKEN_LOOK,
    },
    stall::Impatient,
};

/// Serves whoever connects, until it is dropped. The listener must be one of a loopback address; who may
/// connect from elsewhere is not known here.
pub async fn serve(listener: &TcpListener, site: Arc<dyn Site>, access: Arc<Access>) {
    let handler = Handler::new(site, Arc::clone(&access));
    let mut connections = JoinSet::new();
    let mut looks = interval(TOKEN_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(attend(stream, handler.clone()));
                }
                // One too many: it is closed.
                Ok(_) => (),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => (),
            _ = looks.tick() => access.look(),
        }
    }
}

async fn attend(stream: TcpStream, handler: Handler) {
    // Small events are told at once.
    let _unsupported = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(handler.answer(request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Impatient::new(stream)), service)
        .await;
    // A client that leaves in the middle is its own affair.
    let _left = served;
}
