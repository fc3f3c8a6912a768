//! Follows what a server tells on a stream of its own, as the wire with the handshake has it.

use std::sync::Arc;

use tokio::{sync::oneshot, time::sleep};

use super::{
    super::{
        error::CallError,
        limits::{MAX_RESUMES, RESUME_WAIT},
        wire::sse::Events,
    },
    answer::{AnswerTasks, Inbox, StreamEnd, resume_stream, resume_wait},
    state::HttpShared,
};

/// Follows the stream as long as the server offers one. A new session has a new one. `opened` is told once the server
/// has answered for the first time.
pub(super) async fn follow_events(shared: Arc<HttpShared>, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    let answering = AnswerTasks::default();
    let inbox = Inbox { shared: &shared, answering: &answering };
    let mut sessions = shared.sessions.subscribe();
    loop {
        sessions.mark_unchanged();
        tokio::select! {
            changed = sessions.changed() => if changed.is_err() { return },
            () = follow_session(&inbox, &mut opened) => if sessions.changed().await.is_err() { return },
        }
    }
}

async fn follow_session(inbox: &Inbox<'_>, opened: &mut Option<oneshot::Sender<()>>) {
    let mut events = Events::default();
    let mut in_vain = 0;
    while in_vain < MAX_RESUMES {
        let resumed = resume_stream(inbox.shared, events.last_id.as_deref()).await;
        // The request that waits for it may have been cancelled.
        opened.take().map(|opened| opened.send(()).ok());
        match resumed {
            Ok(body) => {
                let end = inbox.read_events(body, None, &mut events).await;
                let has_brought = matches!(end, StreamEnd::Open(_, true));
                in_vain = if has_brought { 0 } else { in_vain + 1 };
            }
            Err(CallError::Unreachable(_) | CallError::Broken(_) | CallError::Busy(..)) => {
                in_vain += 1;
            }
            // Most servers have none.
            Err(_) => return,
        }
        // A server that asks for no wait and tells nothing would be asked without end.
        sleep(resume_wait(&events).max(RESUME_WAIT)).await;
    }
}
