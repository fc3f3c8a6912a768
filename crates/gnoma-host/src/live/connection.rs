//! One client's connection: requests to where they are answered, and events and replies back.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    protocol::{
        ClientMessage, Peer, Reply, Request, RequestError, RequestErrorKind, RequestId,
        ServerMessage, SessionView,
    },
    store::SessionId,
    task::box_future,
};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
};

use super::{
    handle::{Job, SessionHandle},
    log::{Delivery, Subscription},
    replier::{Replier, ended_error},
    replies::{Fingerprint, ReplyOutcome, RequestRecord},
    shared::HostShared,
};

/// Requests of a client that are answered at once; the next waits.
const MAX_UNDER_WAY: usize = 32;
/// Sessions that a client may be attached to.
const MAX_ATTACHED: usize = 64;
/// Most events that are sent before the client is read again.
const MAX_TOLD_AT_ONCE: usize = 64;
/// Most messages of a conversation in one reply.
const MAX_MESSAGES: u32 = 1_000;
/// Most bytes of them, unless a single one has more.
const MAX_HISTORY_BYTES: usize = 4 << 20;

/// The client has left.
struct ClientLeft;

/// The state of one client's connection.
pub(super) struct Connection {
    shared: Arc<HostShared>,
    client: String,
    /// Notified when something has happened in a session that the client is attached to.
    waker: Arc<Notify>,
    attached: HashMap<SessionId, Subscription>,
    /// The position up to which the client was told of the process's events, if it watches them.
    watching: Option<(u64, watch::Receiver<u64>)>,
    /// Requests that are being answered.
    under_way: JoinSet<(RequestId, ReplyOutcome)>,
    /// Sessions that are being opened.
    opening: JoinSet<()>,
}

impl Connection {
    pub(super) fn new(shared: Arc<HostShared>, client: String) -> Self {
        Self {
            shared,
            client,
            waker: Arc::default(),
            attached: HashMap::new(),
            watching: None,
            under_way: JoinSet::new(),
            opening: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self, peer: Peer) {
        let Peer { mut requests, messages } = peer;
        let mut is_asking = true;
        while is_asking || !self.under_way.is_empty() {
            let has_room = is_asking && self.under_way.len() < MAX_UNDER_WAY;
            let is_told = tokio::select! {
                biased;
                request = requests.recv(), if has_room => match request {
                    Some(request) => self.handle_message(request, &messages).await,
                    None => {
                        is_asking = false;
                        Ok(())
                    }
                },
                Some(_) = self.opening.join_next() => Ok(()),
                Some(done) = self.under_way.join_next() => match done {
                    // What has happened is told before the reply that came of it.
                    Ok((id, result)) => match self.tell_events(&messages).await {
                        Ok(()) => send_message(&messages, ServerMessage::Reply { id, result }).await,
                        left => left,
                    },
                    Err(_) => Ok(()),
                },
                () = messages.closed() => Err(ClientLeft),
                () = self.waker.notified(), if is_asking => self.tell_events(&messages).await,
                () = process_changed(&mut self.watching), if is_asking => {
                    self.tell_process(&messages).await
                }
            };
            if is_told.is_err() {
                return;
            }
        }
    }

    /// Sends the next events, so few that requests of the client are read in between.
    async fn tell_events(
        &mut self,
        messages: &mpsc::Sender<ServerMessage>,
    ) -> Result<(), ClientLeft> {
        // Each session gets its share, so that a busy one does not hide the others.
        let share = MAX_TOLD_AT_ONCE / self.attached.len().max(1);
        for subscription in self.attached.values_mut() {
            let mut left = share;
            while left > 0
                && let Some(delivery) = subscription.next_delivery()
            {
                left -= 1;
                send_message(messages, to_message(delivery)).await?;
            }
            if left == 0 {
                self.waker.notify_one();
            }
        }
        Ok(())
    }

    async fn tell_process(
        &mut self,
        messages: &mpsc::Sender<ServerMessage>,
    ) -> Result<(), ClientLeft> {
        let Some((seen, _)) = &mut self.watching else { return Ok(()) };
        let (events, now) = self.shared.events_since(*seen);
        *seen = now;
        for event in events {
            send_message(messages, ServerMessage::Process(event)).await?;
        }
        Ok(())
    }

    async fn handle_message(
        &mut self,
        message: ClientMessage,
        messages: &mpsc::Sender<ServerMessage>,
    ) -> Result<(), ClientLeft> {
        let fingerprint = (!message.request.is_read()).then(|| Fingerprint::from_message(&message));
        let ClientMessage { id, session, request } = message;
        let Some(fingerprint) = fingerprint else {
            if let Some(result) = self.answer_request(id, session, request, false) {
                return send_message(messages, ServerMessage::Reply { id, result }).await;
            }
            return Ok(());
        };
        let known = self.shared.replies.lock().begin_request(&self.client, id, fingerprint);
        match known {
            RequestRecord::New => match self.answer_request(id, session, request, true) {
                Some(result) => {
                    self.shared.replies.lock().end_request(&self.client, id, &result);
                    send_message(messages, ServerMessage::Reply { id, result }).await
                }
                None => Ok(()),
            },
            RequestRecord::Answered(result) => {
                send_message(messages, ServerMessage::Reply { id, result }).await
            }
            RequestRecord::Other => {
                let cause = format!("the id {} was used for another request", id.0);
                let error = RequestError::new(RequestErrorKind::Invalid, cause);
                let result = Err(error.with_remedy("Give each request its own id."));
                send_message(messages, ServerMessage::Reply { id, result }).await
            }
            RequestRecord::Pending(told) => {
                self.under_way
                    .spawn(async move { (id, told.await.unwrap_or_else(|_| Err(ended_error()))) });
                Ok(())
            }
        }
    }

    /// Answers a request, or sees to it that it will be answered.
    fn answer_request(
        &mut self,
        id: RequestId,
        session: Option<SessionId>,
        request: Request,
        is_kept: bool,
    ) -> Option<ReplyOutcome> {
        match (session, request) {
            (None, request) => self.answer_for_process(id, request, is_kept),
            // Also from a session that has ended.
            (Some(session), Request::Detach) if self.attached.contains_key(&session) => {
                if let Some(subscription) = self.attached.remove(&session) {
                    subscription.detach_client();
                }
                Some(Ok(Reply::Done))
            }
            (Some(session), request) => match self.shared.find_session(&session) {
                Ok(live) => self.answer_for_session(id, &session, &live, request, is_kept),
                Err(error) => Some(Err(error)),
            },
        }
    }

    fn answer_for_process(
        &mut self,
        id: RequestId,
        request: Request,
        is_kept: bool,
    ) -> Option<ReplyOutcome> {
        match request {
            Request::Open(spec) => {
                let shared = Arc::clone(&self.shared);
                let replier = self.new_replier(id, is_kept);
                self.opening.spawn(box_future(async move {
                    let opened = shared.open(*spec).await;
                    replier.reply(opened.map(|session| Reply::Opened { session }));
                }));
                None
            }
            Request::List => Some(Ok(Reply::Live(self.shared.sessions()))),
            Request::StoredIn { .. } | Request::Delete { .. } => {
                self.answer_for_stored(id, request, is_kept);
                None
            }
            Request::Watch => {
                let changed = self.shared.changed.subscribe();
                let seen = *changed.borrow();
                self.watching = Some((seen, changed));
                Some(Ok(Reply::Done))
            }
            Request::Shutdown => {
                self.shared.shutdown.notify_one();
                Some(Ok(Reply::Done))
            }
            _ => Some(Err(RequestError::new(
                RequestErrorKind::NoSession,
                "the request names no session",
            ))),
        }
    }

    /// Answers a request about stored sessions, off the loop.
    fn answer_for_stored(&mut self, id: RequestId, request: Request, is_kept: bool) {
        let shared = Arc::clone(&self.shared);
        let replier = self.new_replier(id, is_kept);
        self.opening.spawn(box_future(async move {
            replier.reply(match request {
                Request::StoredIn { spec, max } => {
                    shared.opener.stored_sessions(*spec, max).await.map(Reply::Stored)
                }
                Request::Delete { spec, id } => {
                    shared.delete_session(*spec, id).await.map(|()| Reply::Done)
                }
                _ => Err(for_process()),
            });
        }));
    }

    fn answer_for_session(
        &mut self,
        id: RequestId,
        session: &SessionId,
        live: &SessionHandle,
        request: Request,
        is_kept: bool,
    ) -> Option<ReplyOutcome> {
        let log = live.log();
        match request {
            Request::Attach { from } => {
                if self.attached.len() >= MAX_ATTACHED {
                    self.attached.retain(|attached, _| self.shared.find_session(attached).is_ok());
                }
                if self.attached.len() >= MAX_ATTACHED && !self.attached.contains_key(session) {
                    let cause = format!("a client can attach to at most {MAX_ATTACHED} sessions");
                    return Some(Err(RequestError::new(RequestErrorKind::Busy, cause)));
                }
                self.attached.insert(session.clone(), log.subscribe(from, &self.waker));
                Some(Ok(Reply::Done))
            }
            Request::Detach => Some(Ok(Reply::Done)),
            Request::Status => {
                Some(Ok(Reply::Status(Box::new(log.with_view(SessionView::status)))))
            }
            Request::Usage => Some(Ok(log.with_view(|view| {
                let mut usage = view.info.before;
                usage += view.usage;
                let (micro_usd, is_cost_partial) = (view.micro_usd, view.is_cost_partial);
                Reply::Usage { usage, micro_usd, is_cost_partial }
            }))),
            Request::History { before, max } => {
                let max = max.min(MAX_MESSAGES) as usize;
                let (first, messages) = log.page(before, max, MAX_HISTORY_BYTES);
                let notes = log.notes(first, first + messages.len() as u64);
                Some(Ok(Reply::History { first, messages, notes }))
            }
            request if is_for_process(&request) => Some(Err(for_process())),
            request => {
                let replier = self.new_replier(id, is_kept);
                live.send(Job { request, replier });
                None
            }
        }
    }

    /// Sends the reply to a request as soon as it is ready.
    fn new_replier(&mut self, id: RequestId, is_kept: bool) -> Replier {
        let replies = is_kept.then(|| Arc::clone(&self.shared.replies));
        let (replier, told) = Replier::new(replies, &self.client, id);
        self.under_way.spawn(box_future(async move {
            (id, told.await.unwrap_or_else(|_| Err(ended_error())))
        }));
        replier
    }
}

/// Reports whether a request is for the process, whichever session it names.
fn is_for_process(request: &Request) -> bool {
    matches!(
        request,
        Request::Open(_)
            | Request::List
            | Request::StoredIn { .. }
            | Request::Delete { .. }
            | Request::Watch
            | Request::Shutdown
    )
}

fn for_process() -> RequestError {
    let cause = "the request is for the process, not for a session";
    RequestError::new(RequestErrorKind::Invalid, cause)
}

async fn send_message(
    messages: &mpsc::Sender<ServerMessage>,
    message: ServerMessage,
) -> Result<(), ClientLeft> {
    messages.send(message).await.map_err(|_| ClientLeft)
}

fn to_message(delivery: Delivery) -> ServerMessage {
    match delivery {
        Delivery::Event(envelope) => ServerMessage::Event(envelope),
        Delivery::Snapshot(view) => ServerMessage::Snapshot(view),
    }
}

/// Waits until something has happened to a session. Never returns if the client does not watch.
async fn process_changed(watching: &mut Option<(u64, watch::Receiver<u64>)>) {
    if let Some((_, changed)) = watching
        && changed.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
