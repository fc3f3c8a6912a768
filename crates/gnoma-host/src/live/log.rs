//! The event log of one session: numbers the events, folds them, and hands them to any number of subscribers.
//!
//! The log keeps the latest events and the fold of all of them. A subscriber has a place in it, and nothing waits
//! for a subscriber: one that falls too far behind gets the fold in place of what it missed, so that a reader that
//! stops reading costs nothing.

use std::{collections::VecDeque, sync::Arc};

use gnoma_core::{
    Event, Message,
    protocol::{Envelope, Epoch, HistoryNote, Position, SessionView},
    session::SessionState,
    store::SessionId,
    sync::Mutex,
};
use tokio::sync::Notify;

use super::history_notes::HistoryNotes;

/// Most envelopes that are kept for subscribers that are behind.
const MAX_KEPT: usize = 2_048;
/// Most bytes of them, roughly.
const MAX_KEPT_BYTES: usize = 4 << 20;
/// Most envelopes that are kept while the session is idle.
const MAX_KEPT_IDLE: usize = 128;

/// The log of one session. Clones are the same log.
#[derive(Clone)]
pub struct EventLog(Arc<Mutex<State>>);

struct State {
    view: SessionView,
    /// The conversation, for requests of a part of it.
    messages: Vec<Arc<Message>>,
    /// The notes between the messages.
    notes: HistoryNotes,
    /// The last envelopes of this epoch, without gaps.
    kept: VecDeque<Arc<Envelope>>,
    kept_bytes: usize,
    /// Most envelopes that are kept while a turn runs.
    most_kept: usize,
    /// The subscribers to wake when something happens; an entry for each subscription.
    wakers: Vec<Arc<Notify>>,
    /// Woken when a subscriber comes or goes, or receives something for the first time.
    attendance: Arc<Notify>,
    /// `true` if the subscriber that went last left on purpose.
    is_left: bool,
    /// A subscriber has received something.
    has_reader: bool,
}

/// An item that is delivered to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The next event of the log.
    Event(Arc<Envelope>),
    /// The fold of everything up to its number, in place of events that are not to be had.
    Snapshot(Box<SessionView>),
}

/// A place in a log. Dropping it gives the place up.
pub struct Subscription {
    log: EventLog,
    /// The last event that the subscriber knows; `None` before the first snapshot.
    at: Option<Position>,
    waker: Arc<Notify>,
    /// `true` if the subscriber left on purpose: its connection did not break.
    leaves: bool,
}

impl EventLog {
    /// The log of a session that continues with `messages`.
    #[must_use]
    pub fn new(
        session: SessionId,
        epoch: Epoch,
        parent: Option<SessionId>,
        messages: Vec<Arc<Message>>,
    ) -> Self {
        Self(Arc::new(Mutex::new(State {
            view: first_view(session, epoch, parent, &messages),
            messages,
            notes: HistoryNotes::default(),
            kept: VecDeque::new(),
            kept_bytes: 0,
            most_kept: MAX_KEPT,
            wakers: Vec::new(),
            attendance: Arc::default(),
            is_left: false,
            has_reader: false,
        })))
    }

    /// Begins another epoch of the session, with another conversation. Every subscriber gets a
    /// snapshot.
    pub fn begin_epoch(&self, epoch: Epoch, messages: Vec<Arc<Message>>) {
        let mut state = self.0.lock();
        let parent = state.view.parent.clone();
        let first = first_view(state.view.session.clone(), epoch, parent, &messages);
        // What was spent stays spent.
        let SessionView { micro_usd, is_cost_partial, .. } = state.view;
        state.view = SessionView { micro_usd, is_cost_partial, ..first };
        let same = state.messages.iter().zip(&messages).take_while(|(old, new)| old == new).count();
        state.notes.begin_epoch(same);
        state.messages = messages;
        state.kept.clear();
        state.kept_bytes = 0;
        state.wake_subscribers();
    }

    /// Adds an event to the log.
    pub fn push(&self, event: Event, at_ms: i64) {
        let mut state = self.0.lock();
        if let Event::Appended(message) = &event {
            state.messages.push(Arc::clone(message));
        }
        let is_idle = matches!(event, Event::State(SessionState::Idle));
        let SessionView { session, epoch, parent, seq, .. } = &state.view;
        let envelope = Envelope {
            session: session.clone(),
            epoch: *epoch,
            parent: parent.clone(),
            seq: seq + 1,
            at_ms,
            event,
        };
        state.view.apply_envelope(&envelope);
        let messages = state.messages.len();
        state.notes.push_envelope(&envelope, messages);
        let most = state.most_kept;
        state.retain_envelope(envelope, if is_idle { most.min(MAX_KEPT_IDLE) } else { most });
        state.wake_subscribers();
    }

    /// The fold of the session's events.
    #[must_use]
    pub fn view(&self) -> SessionView {
        self.0.lock().view.clone()
    }

    /// Looks at the view without copying it.
    pub fn with_view<T>(&self, look: impl FnOnce(&SessionView) -> T) -> T {
        look(&self.0.lock().view)
    }

    /// At most `max` messages before the one of that number, and the number of the first of them: fewer
    /// where they would have more than `max_bytes`, but always one.
    #[must_use]
    pub fn page(
        &self,
        before: Option<u64>,
        max: usize,
        max_bytes: usize,
    ) -> (u64, Vec<Arc<Message>>) {
        let (first, mut messages) = self.messages(before, max);
        let mut bytes = 0_usize;
        let fit = messages.iter().rev().take_while(|message| {
            let is_last = bytes == 0;
            bytes = bytes.saturating_add(message.content_bytes().max(1));
            is_last || bytes <= max_bytes
        });
        let left_out = messages.len() - fit.count();
        messages.drain(..left_out);
        (first + left_out as u64, messages)
    }

    /// At most `max` messages before the one of that number, and the number of the first of them.
    #[must_use]
    pub fn messages(&self, before: Option<u64>, max: usize) -> (u64, Vec<Arc<Message>>) {
        let state = self.0.lock();
        let before = before.and_then(|before| usize::try_from(before).ok());
        let end = before.unwrap_or(usize::MAX).min(state.messages.len());
        let first = end.saturating_sub(max);
        let messages = state.messages.get(first..end).unwrap_or_default().to_vec();
        (first as u64, messages)
    }

    /// The notes on the messages from `first` to before `end`.
    #[must_use]
    pub fn notes(&self, first: u64, end: u64) -> Vec<HistoryNote> {
        self.0.lock().notes.between(first, end)
    }

    /// Adds what is stored of the conversation beside its messages, as far as the log does not know it.
    pub fn add_stored_notes(&self, notes: Vec<HistoryNote>) {
        self.0.lock().notes.add_stored(notes);
    }

    /// Returns the number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.lock().wakers.len()
    }

    /// Reports whether no client sees the session, and it neither works nor waits for a user.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let State { view, wakers, .. } = &*self.0.lock();
        let is_at_work = matches!(view.state, SessionState::Active | SessionState::Cancelling);
        wakers.is_empty() && !is_at_work && view.status().questions == 0
    }

    /// No one subscribes, and the last subscriber left on purpose: its connection did not break.
    #[must_use]
    pub fn is_left(&self) -> bool {
        let state = self.0.lock();
        state.is_left && state.wakers.is_empty()
    }

    /// Returns whether a subscriber has received anything. Notices that are pushed before may be lost: a snapshot has
    /// none.
    #[must_use]
    pub fn has_reader(&self) -> bool {
        self.0.lock().has_reader
    }

    /// Woken when a subscriber comes or goes, or receives something for the first time.
    #[must_use]
    pub fn subscriber_notify(&self) -> Arc<Notify> {
        Arc::clone(&self.0.lock().attendance)
    }

    /// Subscribes after `from`, or from a snapshot on. `waker` is notified when there is something to
    /// [take](Subscription::next_delivery); several subscriptions may share one.
    #[must_use]
    pub fn subscribe(&self, from: Option<Position>, waker: &Arc<Notify>) -> Subscription {
        let mut state = self.0.lock();
        state.wakers.push(Arc::clone(waker));
        state.attendance.notify_one();
        waker.notify_one();
        drop(state);
        Subscription { log: self.clone(), at: from, waker: Arc::clone(waker), leaves: false }
    }
}

/// The view of a session that continues with `messages`. They can be read at once, also while the engine still
/// waits for a server to name its models, so the view counts them before the engine does.
fn first_view(
    session: SessionId,
    epoch: Epoch,
    parent: Option<SessionId>,
    messages: &[Arc<Message>],
) -> SessionView {
    let view = SessionView::new(session, epoch, parent);
    SessionView { messages: messages.len() as u64, ..view }
}

impl State {
    fn retain_envelope(&mut self, envelope: Envelope, most: usize) {
        self.kept_bytes += envelope.event_bytes();
        self.kept.push_back(Arc::new(envelope));
        while self.kept.len() > most || self.kept_bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.event_bytes();
        }
    }

    fn wake_subscribers(&self) {
        self.wakers.iter().for_each(|waker| waker.notify_one());
    }

    /// Returns what follows a position; `None` if nothing does.
    fn delivery_after(&self, at: Option<Position>) -> Option<Delivery> {
        let snapshot = || Some(Delivery::Snapshot(Box::new(self.view.clone())));
        let Some(at) = at.filter(|at| at.epoch == self.view.epoch && at.seq <= self.view.seq)
        else {
            return snapshot();
        };
        if at.seq == self.view.seq {
            return None;
        }
        let missing = self.view.seq - at.seq;
        let kept = self.kept.len() as u64;
        match kept.checked_sub(missing).and_then(|place| usize::try_from(place).ok()) {
            Some(place) => self.kept.get(place).cloned().map(Delivery::Event),
            None => snapshot(),
        }
    }
}

impl Subscription {
    /// The session that it is of.
    #[must_use]
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// Gives up the place on purpose, which [`EventLog::is_left`] distinguishes from a broken connection.
    pub fn detach_client(mut self) {
        self.leaves = true;
    }

    /// The next delivery, if it is ready.
    pub fn next_delivery(&mut self) -> Option<Delivery> {
        let mut state = self.log.0.lock();
        let delivery = state.delivery_after(self.at)?;
        if !std::mem::replace(&mut state.has_reader, true) {
            state.attendance.notify_one();
        }
        drop(state);
        self.at = Some(match &delivery {
            Delivery::Event(envelope) => Position { epoch: envelope.epoch, seq: envelope.seq },
            Delivery::Snapshot(view) => view.position(),
        });
        Some(delivery)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.log.0.lock();
        let own = state.wakers.iter().position(|waker| Arc::ptr_eq(waker, &self.waker));
        own.map(|place| state.wakers.swap_remove(place));
        state.is_left = self.leaves;
        state.attendance.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::session::NoticeLevel;
    use proptest::prelude::*;

    use super::*;

    /// Walks of the law, unless `GNOMA_WALKS` says another number.
    const WALKS: u32 = 20_000;

    /// Envelopes that are kept on the walks.
    const MOST_KEPT: usize = 8;

    fn text(text: &str) -> Event {
        Event::Text { text: text.to_owned() }
    }

    fn log() -> EventLog {
        EventLog::new(SessionId::new("s"), Epoch(1), None, Vec::new())
    }

    /// A front end: what it was given, folded.
    struct Reader {
        subscription: Option<Subscription>,
        view: SessionView,
        snapshots: usize,
    }

    impl Reader {
        fn new() -> Self {
            Self { subscription: None, view: SessionView::default(), snapshots: 0 }
        }

        fn attach(&mut self, log: &EventLog, knows: bool) {
            let from = knows.then(|| self.view.position());
            self.subscription = Some(log.subscribe(from, &Arc::default()));
        }

        fn read(&mut self, most: usize) {
            let Some(subscription) = &mut self.subscription else { return };
            for _ in 0..most {
                match subscription.next_delivery() {
                    None => break,
                    Some(Delivery::Snapshot(view)) => {
                        self.view = *view;
                        self.snapshots += 1;
                    }
                    Some(Delivery::Event(envelope)) => {
                        assert_eq!(envelope.seq, self.view.seq + 1, "a gap");
                        self.view.apply_envelope(&envelope);
                    }
                }
            }
        }
    }

    #[test]
    fn slow_subscriber_gets_a_snapshot_and_the_event_log_is_bounded() {
        let log = log();
        let (mut slow, mut quick) = (Reader::new(), Reader::new());
        slow.attach(&log, false);
        quick.attach(&log, false);
        slow.read(1);
        for _ in 0..3 * MAX_KEPT {
            log.push(text("more "), 0);
            quick.read(8);
        }
        assert!(log.0.lock().kept.len() <= MAX_KEPT);
        assert_eq!(quick.snapshots, 1, "whoever keeps up is given every event");
        slow.read(usize::MAX);
        assert_eq!((slow.snapshots, &slow.view), (2, &log.view()));
        let big = "x".repeat(MAX_KEPT_BYTES / 4);
        (0..8).for_each(|_| log.push(text(&big), 0));
        assert!(log.0.lock().kept_bytes <= MAX_KEPT_BYTES);
    }

    #[test]
    fn messages_are_read_backwards_in_pages() {
        let message = |number: u64| Arc::new(Message::user_text(format!("m{number}")));
        let log = EventLog::new(SessionId::new("s"), Epoch(1), None, vec![message(0), message(1)]);
        log.push(Event::Appended(message(2)), 0);
        assert_eq!(log.messages(None, 2), (1, vec![message(1), message(2)]));
        assert_eq!(log.messages(Some(1), 2), (0, vec![message(0)]));
        assert_eq!(log.messages(Some(9), 1), (2, vec![message(2)]));
        assert_eq!(log.messages(Some(0), 5), (0, vec![]));
        assert_eq!(log.page(None, 9, 4), (1, vec![message(1), message(2)]));
        assert_eq!(log.page(None, 9, 1), (2, vec![message(2)]), "one in any case");
        assert_eq!(log.page(Some(2), 1, 99), (1, vec![message(1)]));
    }

    #[test]
    fn history_notes_stay_with_their_messages_across_epochs() {
        let message = |number: u64| Arc::new(Message::user_text(format!("m{number}")));
        let cost = |micro_usd| Event::Cost {
            arm: gnoma_core::ModelRef { provider: "p".into(), model: "m".into() },
            call_micro_usd: Some(micro_usd),
            turn_micro_usd: micro_usd,
            session_micro_usd: micro_usd,
            estimated: false,
        };
        let told = |log: &EventLog, first, end| -> Vec<(u64, u64, bool)> {
            let notes = log.notes(first, end).into_iter();
            notes.map(|it| (it.after, it.seq, it.event == cost(1))).collect()
        };
        let log = log();
        log.push(cost(1), 0);
        log.push(Event::Appended(message(0)), 0);
        log.push(cost(1), 0);
        log.push(text("not noted"), 0);
        log.push(Event::Appended(message(1)), 0);
        log.push(cost(1), 0);
        assert_eq!(told(&log, 0, 9), [(0, 3, true), (1, 6, true)], "none before the first message");
        assert_eq!(told(&log, 1, 2), [(1, 6, true)]);
        // A rewind to after the first message, and what the store knows of another second one.
        log.begin_epoch(Epoch(2), vec![message(0), message(9)]);
        let stored = |after| HistoryNote { after, seq: 0, at_ms: 0, event: cost(2) };
        log.add_stored_notes(vec![stored(0), stored(1)]);
        assert_eq!(told(&log, 0, 9), [(0, 0, true), (1, 0, false)]);
    }

    #[test]
    fn resumed_messages_are_counted_before_the_engine_starts() {
        let message = |number: u64| Arc::new(Message::user_text(format!("m{number}")));
        let log = EventLog::new(SessionId::new("s"), Epoch(1), None, vec![message(0), message(1)]);
        assert_eq!(log.view().messages, 2);
        log.begin_epoch(Epoch(2), vec![message(0)]);
        assert_eq!(log.view().messages, 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(bool),
        Flood,
        Epoch,
        Attach(usize, bool),
        Leave(usize),
        Read(usize, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let reader = 0_usize..3;
        prop_oneof![
            20 => any::<bool>().prop_map(Step::Push),
            1 => Just(Step::Flood),
            2 => Just(Step::Epoch),
            5 => (reader.clone(), any::<bool>()).prop_map(|(reader, knows)| Step::Attach(reader, knows)),
            3 => reader.clone().prop_map(Step::Leave),
            12 => (reader, 0_usize..6).prop_map(|(reader, most)| Step::Read(reader, most)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: option_env!("GNOMA_WALKS").and_then(|told| told.parse().ok()).unwrap_or(WALKS),
            ..ProptestConfig::default()
        })]

        /// Whatever attaches, lags, leaves or comes back: a view that has caught up equals the log's,
        /// and nobody sees a gap.
        #[test]
        fn subscriber_view_equals_the_event_log_after_catching_up(
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let log = log();
            log.0.lock().most_kept = MOST_KEPT;
            let mut epoch = 1;
            let mut readers = [Reader::new(), Reader::new(), Reader::new()];
            for step in steps {
                match step {
                    Step::Push(is_state) => log.push(if is_state {
                        Event::State(SessionState::Active)
                    } else {
                        Event::Notice { level: NoticeLevel::Info, text: "n".to_owned() }
                    }, 0),
                    Step::Flood => (0..=MOST_KEPT).for_each(|_| log.push(text("."), 0)),
                    Step::Epoch => {
                        epoch += 1;
                        log.begin_epoch(Epoch(epoch), Vec::new());
                    }
                    Step::Attach(reader, knows) => readers[reader].attach(&log, knows),
                    Step::Leave(reader) => readers[reader].subscription = None,
                    Step::Read(reader, most) => readers[reader].read(most),
                }
            }
            let attached = readers.iter().filter(|reader| reader.subscription.is_some()).count();
            prop_assert_eq!(log.subscribers(), attached);
            for reader in &mut readers {
                reader.read(usize::MAX);
                if reader.subscription.is_some() {
                    prop_assert_eq!(&reader.view, &log.view());
                }
            }
        }
    }
}
