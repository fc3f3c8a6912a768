//! Requests to the session and its host, and what their replies lead to. Nothing waits for a reply: a list opens
//! when its rows have arrived, and until then Esc cancels it.

use std::{
    mem,
    time::{Duration, Instant},
};

use gnoma_core::protocol::{
    Connection, Reply, Request, RequestError, RequestErrorKind, SessionView, Switch,
};

use super::{
    State,
    layer::{Layer, LayerChoice},
    parts::{HintSubject, LookUp, LookUpTarget},
};
use crate::{
    ask::{Purpose, ViewRequest, describe_request_error, text_of},
    commands,
    effect::Effect,
};

/// A look-up that takes longer is shown.
const SLOW: Duration = Duration::from_millis(100);
/// The words with which the host begins to say that a provider has no key.
const NO_KEY: &str = "no key for ";
/// Commands that wait for the end of the turn.
const MAX_PUT_OFF: usize = 8;

impl State {
    /// Asks the session or its host.
    pub(crate) fn send_request(&mut self, request: Request, purpose: Purpose) {
        self.emit(Effect::Ask(ViewRequest { request, purpose }));
    }

    /// Asks for something that is shown when it is there, in place of what was asked for before.
    pub(crate) fn look_up(&mut self, sought: LookUpTarget, request: Request, argument: &str) {
        self.look_ups.count += 1;
        let (number, since, argument) = (self.look_ups.count, self.now, argument.to_owned());
        self.look_ups.open = Some(LookUp { number, sought, since, argument });
        self.send_request(request, Purpose::LookUp(number));
    }

    /// Asks that the session continue in another way, or for another one.
    pub(crate) fn switch_session(&mut self, request: Request) {
        // What counts turns back would count the one that runs.
        let waits = matches!(request, Request::Switch(_) | Request::Fork);
        if !waits && self.running.is_some() {
            return self.show_hint("Turn running. Press Esc to stop it first");
        }
        if waits && !self.is_between_turns() {
            return self.put_off(request);
        }
        let note = commands::switch_note(&request, self.session.view.messages > 0);
        let keeps_conversation = request == Request::Fork;
        if !matches!(request, Request::Rewind { conversation: true, .. }) {
            self.session.rewound = None;
        }
        let copy = match &request {
            Request::Switch(Switch::Stored(id)) => Some(Switch::Copy(id.clone())),
            _ => None,
        };
        self.session.is_switching = true;
        self.setup.asked_model = match &request {
            Request::Switch(Switch::Model(name)) => Some(name.clone()),
            _ => None,
        };
        self.send_request(request, Purpose::Switch { keeps_conversation, note, copy });
    }

    /// Asks the session to compact the conversation.
    pub(crate) fn compact_conversation(&mut self, request: Request) {
        if !self.is_between_turns() {
            return self.put_off(request);
        }
        self.send_request(request, Purpose::Order);
        self.hint_about(HintSubject::Compaction, "Compacting the conversation…");
    }

    /// Queues a request until the turn ends: the answer is on the screen before that, and a person who has read it
    /// types the next command.
    fn put_off(&mut self, request: Request) {
        if self.session.is_switching {
            return self.not_run("Not run, because another session is opening", &[request]);
        }
        if self.session.later.len() == MAX_PUT_OFF {
            return self.not_run("Not run, because too many commands are queued", &[request]);
        }
        if self.session.later.back() != Some(&request) {
            self.session.later.push_back(request);
        }
        self.show_hint("Turn running. Queued until it ends; press Esc to remove it");
    }

    /// Gives up the commands that wait. Says whether there were any.
    pub(super) fn drop_later(&mut self) -> bool {
        let dropped: Vec<Request> = self.session.later.drain(..).collect();
        if !dropped.is_empty() {
            self.not_run("Removed from the queue and not run", &dropped);
        }
        !dropped.is_empty()
    }

    fn not_run(&mut self, why: &str, commands: &[Request]) {
        let names: Vec<&str> = commands.iter().map(commands::name_of).collect();
        self.show_warning(&format!("{why}: {}", names.join(", ")));
        self.hold_waiting();
    }

    /// Holds the messages that wait: they may be meant only for where a command leads that is not done.
    fn hold_waiting(&mut self) {
        if self.queue.waiting_count() > 0 {
            self.hold_queue();
            self.tell_waiting();
        }
    }

    /// Does what was put off, once the turn is over.
    pub(super) fn catch_up_on_later(&mut self) {
        if !self.is_between_turns() || self.session.is_switching {
            return;
        }
        match self.session.later.pop_front() {
            Some(request @ Request::Compact { .. }) => self.compact_conversation(request),
            Some(request) => self.switch_session(request),
            None => (),
        }
    }

    /// Shows an elf's session in place of this one, which continues; without a name the one that the person
    /// opened.
    pub(crate) fn watch_elf(&mut self, name: &str) {
        self.drop_later();
        self.session.is_switching = true;
        let purpose = Purpose::Switch { keeps_conversation: false, note: "", copy: None };
        self.send_request(Request::WatchElf { name: name.to_owned() }, purpose);
    }

    /// Gives up what is looked up. Says whether something was.
    pub(super) fn give_up_look_up(&mut self) -> bool {
        let given_up = self.look_ups.open.take();
        if let Some(look_up) = &given_up {
            self.show_hint(format!("Stopped loading {}", look_up.sought.name()));
            self.type_again();
        }
        given_up.is_some()
    }

    /// Describes the current look-up, where it takes long enough to be seen.
    pub(super) fn slow_look_up(&self) -> Option<String> {
        let look_up = self.look_ups.open.as_ref()?;
        let is_slow = self.now.saturating_duration_since(look_up.since) >= SLOW;
        is_slow.then(|| format!("loading {}", look_up.sought.name()))
    }

    /// From when on it is shown that something is looked up.
    pub(super) fn look_up_shows_at(&self) -> Option<Instant> {
        let at = self.look_ups.open.as_ref()?.since + SLOW;
        (at > self.now).then_some(at)
    }

    /// A reply has come, or the request has failed.
    pub(super) fn on_reply(&mut self, purpose: Purpose, result: Result<Reply, RequestError>) {
        match (purpose, result) {
            (Purpose::LookUp(number), result) => self.found_out(number, result),
            (Purpose::GrowModels, result) => self.on_models_reply(result),
            (Purpose::Switch { copy: Some(copy), .. }, Err(error))
                if error.kind == RequestErrorKind::Held =>
            {
                self.offer_copy(copy, &error);
            }
            (Purpose::Switch { keeps_conversation, note, .. }, result) => {
                self.on_switch_reply(keeps_conversation, note, result);
            }
            (Purpose::Past, result) => self.past_read(result),
            (Purpose::Earlier, Ok(Reply::Stored(sessions))) => self.offer_earlier(sessions),
            (Purpose::Earlier, _) => (),
            (
                purpose @ (Purpose::RulePlace { .. }
                | Purpose::CheckRule { .. }
                | Purpose::KeepRule { .. }),
                result,
            ) => self.on_rule_reply(purpose, result),
            (Purpose::TryProvider(connection), result) => {
                self.on_connection_tried(&connection, text_of(result));
            }
            (Purpose::AddProvider(connection), result) => {
                self.on_connection_saved(&connection, text_of(result));
            }
            (Purpose::Report(more), Ok(Reply::Text(text))) => {
                self.append_note(&format!("{text}{more}"));
            }
            (Purpose::Rename, Ok(Reply::Text(title))) => {
                self.append_note(&format!("`{title}` is the title now"));
            }
            (Purpose::Detach, Ok(_)) => {
                self.exit.is_detached = true;
                self.quit();
            }
            (purpose, Err(error)) => {
                self.end_hints(HintSubject::Compaction);
                self.on_request_failed(purpose, &error);
            }
            (_, Ok(_)) => (),
        }
    }

    /// Lists the models that the host has found; those that were known before if it could not look for more.
    fn on_models_reply(&mut self, result: Result<Reply, RequestError>) {
        match result {
            Ok(Reply::Choices(models)) => commands::models_listed(self, models),
            Ok(_) => (),
            Err(error) => {
                let known = self.session.view.models.clone();
                commands::models_listed(self, known);
                self.show_hint(describe_request_error(&error));
            }
        }
    }

    /// Handles the reply to a request about the rule of a permission question.
    fn on_rule_reply(&mut self, purpose: Purpose, result: Result<Reply, RequestError>) {
        match purpose {
            Purpose::RulePlace { call, scope } => self.rule_place_known(&call, scope, result),
            Purpose::CheckRule { call, rule, scope } => {
                self.rule_checked(call, rule, scope, result);
            }
            Purpose::KeepRule { call, rule, scope } => self.rule_kept(call, rule, scope, result),
            _ => (),
        }
    }

    fn found_out(&mut self, number: u64, result: Result<Reply, RequestError>) {
        let Some(look_up) = self.look_ups.open.take_if(|look_up| look_up.number == number) else {
            return;
        };
        match result {
            Ok(reply) => commands::show_reply(self, look_up.sought, reply, &look_up.argument),
            Err(error) => self.show_warning(&describe_request_error(&error)),
        }
        self.type_again();
    }

    /// The session is open elsewhere: asks whether a copy of it will do.
    fn offer_copy(&mut self, copy: Switch, error: &RequestError) {
        self.session.is_switching = false;
        self.stays_here();
        let question = format!("{}. Continue in a copy?", error.cause);
        self.ask_confirmation(&question, LayerChoice::Switch(Request::Switch(copy)));
    }

    fn on_switch_reply(&mut self, keeps: bool, note: &str, result: Result<Reply, RequestError>) {
        // It is until the next snapshot.
        self.session.is_switching &= result.is_ok();
        match result {
            Ok(Reply::Text(text)) => text.lines().for_each(|line| self.append_note(line)),
            Ok(Reply::Opened { session })
                if !keeps && session == self.session.view.session && !self.is_closed() =>
            {
                self.session.is_switching = false;
                self.show_hint("This is the session that is open already");
            }
            Ok(reply) => {
                self.session.keeps_conversation = keeps && matches!(reply, Reply::Opened { .. });
                if !note.is_empty() {
                    self.append_note(note);
                }
            }
            Err(error) => {
                self.session.rewound = None;
                let model = self.setup.asked_model.take();
                let lacks_key = error.cause.starts_with(NO_KEY);
                let offers = lacks_key && model.is_some_and(|model| self.offer_key_for(&model));
                if offers {
                    let cause = error.cause.lines().next().unwrap_or_default();
                    self.append_note(
                        cause.trim_end_matches([':', '.']).split(". ").next().unwrap_or(cause),
                    );
                } else {
                    self.show_warning(&describe_request_error(&error));
                }
                self.stays_here();
            }
        }
    }

    /// A switch was not made. What waits for it goes to this session only if the person says so.
    fn stays_here(&mut self) {
        self.drop_later();
        self.hold_waiting();
    }

    /// Handles a request that was not carried out. What was written comes back, what was asked is asked again.
    fn on_request_failed(&mut self, purpose: Purpose, error: &RequestError) {
        let why = describe_request_error(error);
        match purpose {
            Purpose::Send(content) => self.not_sent(&content, &why),
            Purpose::Answer(call) => self.ask_again(&call, error),
            Purpose::Stop => {
                if let Some(running) = &mut self.running {
                    running.is_stopping = false;
                }
                self.show_warning(&format!("Could not stop the turn: {why}. Press Esc again"));
            }
            Purpose::Mode(mode) => {
                self.facts.mode = self.session.view.mode;
                self.show_warning(&format!(
                    "The mode is still {}: {why}. Retry with `/permission {mode}`",
                    self.session.view.mode
                ));
            }
            _ => self.show_warning(&why),
        }
    }

    /// There is no session: none could be opened, or it is not there any more.
    pub(super) fn no_session(&mut self, error: &RequestError) {
        self.session.is_switching = false;
        self.forget_turn();
        self.session.is_closed = true;
        if mem::take(&mut self.session.is_returning) {
            // What was meant for this session goes to no other by itself.
            self.hold_queue();
        }
        let SessionView { seq, info, .. } = &self.session.view;
        if *seq > 0 && !info.is_kept {
            return self.show_warning(
                "The session was not saved and ended with its server. Your draft is here; /clear starts a new session",
            );
        }
        self.show_warning(&describe_request_error(error));
        self.show_warning("Could not open a session. Your draft is saved; /clear to retry");
    }

    pub(super) fn on_disconnected(&mut self, returns: bool) {
        self.session.is_switching = false;
        self.forget_turn();
        self.session.is_closed = true;
        self.session.is_returning = returns;
        self.show_warning(if returns {
            "Lost the connection to the server. Your draft is saved; reconnecting…"
        } else {
            "Lost the connection to the session. Your draft is saved"
        });
    }

    /// Leaves the window while the session continues in its server.
    pub(crate) fn detach(&mut self) {
        if !self.session.is_served {
            return self.show_hint(
                "This session runs in this window, so you cannot detach from it. Start `gnoma serve` first, then return with `gnoma attach`",
            );
        }
        self.send_request(Request::KeepRunning { keep: true }, Purpose::Detach);
    }

    /// Says where the debug log is, or how to have one.
    pub(crate) fn show_debug_log(&mut self) {
        let text = if self.session.is_served {
            "The server writes the debug log of this session: start `gnoma serve` with `--log FILE`"
                .to_owned()
        } else if self.facts.incognito {
            "An incognito session is not in a debug log".to_owned()
        } else if let Some(path) = &self.session.debug_log {
            format!("The debug log is `{path}`")
        } else {
            "There is no debug log. To write one, leave with /exit and return with `GNOMA_LOG=debug gnoma --continue`"
                .to_owned()
        };
        self.append_note(&text);
    }

    pub(super) fn try_connection(&mut self, connection: Connection) {
        let purpose = Purpose::TryProvider(connection.clone());
        self.send_request(Request::TryProvider(connection), purpose);
    }

    pub(super) fn add_connection(&mut self, connection: Connection) {
        let purpose = Purpose::AddProvider(connection.clone());
        self.send_request(Request::AddProvider(connection), purpose);
    }

    fn on_connection_tried(
        &mut self,
        connection: &Connection,
        outcome: Result<String, RequestError>,
    ) {
        if let Some(Layer::Setup(setup)) = &mut self.layer {
            setup.on_connection_tried(connection, outcome);
        }
    }
}
