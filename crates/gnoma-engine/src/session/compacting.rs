//! The session's side of compaction: the past of the conversation is told in fewer words because a
//! person asks for it, or because the window of the arm in charge is full.
//!
//! What stays and what is asked is decided in [`crate::compact`]. Nothing changes until the words are
//! there and are fewer; the history itself never does. What people say while a person's wish is carried
//! out waits for its end.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    ErrorKind, Event, Message, ModelRef, ProviderError,
    session::{NoticeLevel, SessionState},
};

use super::{
    Closed, Session,
    way::{Prepared, Way},
};
use crate::{
    arm::Arm,
    compact::{self, FEW_MESSAGES, Past},
    prompt,
    routing::ask::{Account, Share},
    turn::Input,
};

/// Longest wait for the words.
const PATIENCE: Duration = Duration::from_secs(120);
/// After so many failures in a row only a person starts it.
const MAX_FAILURES: u32 = 3;

/// Why the past is told in fewer words.
enum Why {
    /// A person asked for it, between turns.
    Asked,
    /// The window is about to be full.
    Filled,
    /// The provider has refused the conversation for its length.
    Refused(ProviderError),
}

/// A compaction under way.
struct UnderWay {
    why: Why,
    /// How many messages of the history the words will stand for.
    messages: usize,
    /// Tokens of what they will stand for.
    past_tokens: u64,
    /// The window the conversation has to fit.
    window: Option<u32>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Compacting {
    under_way: Option<UnderWay>,
    /// How often it failed in a row.
    failures: u32,
    /// The call that it was last started for unasked: once for each.
    started_for: Option<(u64, u32)>,
    /// What was said meanwhile.
    waiting: Vec<Message>,
}

impl Compacting {
    /// Nobody waits for the words any more.
    pub(super) fn stop(&mut self) {
        self.under_way = None;
    }

    /// Whether it may start by itself for a call.
    fn may_start(&self, way: &Way) -> bool {
        self.failures < MAX_FAILURES && self.started_for != Some(way.call())
    }
}

/// What came of asking for the words: they, or why there are none, and what that took.
pub(super) struct Told {
    words: Result<String, String>,
    shares: Vec<Share>,
}

/// Why it does not even start.
enum Cannot {
    /// There is nothing to tell in fewer words.
    NothingToShorten,
    /// No arm can be asked.
    NobodyToAsk,
}

impl Session {
    /// A person asks for it.
    pub(super) async fn compact(&mut self, focus: String) -> Result<(), Closed> {
        if self.compacting.under_way.is_some() {
            return self
                .say(NoticeLevel::Info, "the conversation is being shortened already")
                .await;
        }
        if !self.turn.is_idle() {
            let text = "the conversation can be shortened only between turns; wait for the end of \
                        this one, or stop it first";
            return self.say(NoticeLevel::Warning, text).await;
        }
        match self.start(Why::Asked, focus) {
            Ok(()) => self.emit(Event::State(SessionState::Active)).await,
            Err(Cannot::NothingToShorten) => {
                let text = format!(
                    "there is nothing to shorten: the conversation has no more than \
                     {FEW_MESSAGES} messages"
                );
                self.say(NoticeLevel::Info, &text).await
            }
            Err(Cannot::NobodyToAsk) => {
                let text = "the conversation is not shortened: no model can be asked for a summary \
                            now; `gnoma route` shows every model with what excludes it";
                self.say(NoticeLevel::Warning, text).await
            }
        }
    }

    /// Something is said: at once, or after the compaction that a person asked for.
    pub(super) fn said(&mut self, message: Message) -> Option<Input> {
        if self.is_compacting_as_asked() {
            self.compacting.waiting.push(message);
            return None;
        }
        Some(Input::Say(message))
    }

    /// Somebody wants an end of what is under way.
    pub(super) async fn cancelled(&mut self) -> Result<Option<Input>, Closed> {
        if !self.is_compacting_as_asked() {
            return Ok(Some(Input::Cancel));
        }
        self.way.drop_call();
        self.compacting.stop();
        self.say(NoticeLevel::Info, "stopped; the conversation is as it was").await?;
        self.rest().await?;
        self.follow().await?;
        Ok(None)
    }

    /// A call of the turn may begin, once the conversation has room for it.
    pub(super) async fn go_ahead(&mut self) -> Result<(), Closed> {
        if self.is_filled() && self.start(Why::Filled, String::new()).is_ok() {
            let text = "the model's window is almost full: the past is being told in fewer words";
            return self.say(NoticeLevel::Info, text).await;
        }
        self.make_room().await
    }

    /// A call has failed: the fact for the machine, or none where it is made again with less.
    pub(super) async fn call_failed(
        &mut self,
        error: ProviderError,
    ) -> Result<Option<Input>, Closed> {
        let input = self.after_failure(error, true);
        let Input::Model(Err(error)) = input else { return Ok(Some(input)) };
        let is_too_long = error.kind == ErrorKind::ContextTooLong && !self.turn.has_content();
        if !is_too_long || !self.compacting.may_start(&self.way) {
            return Ok(Some(Input::Model(Err(error))));
        }
        if self.start(Why::Refused(error.clone()), String::new()).is_err() {
            return Ok(Some(Input::Model(Err(error))));
        }
        self.stream = None;
        let untold = self.way.give_up_call();
        self.tell_costs(untold).await?;
        let text =
            "the conversation is too long for the model: the past is being told in fewer words";
        self.say(NoticeLevel::Info, text).await?;
        Ok(None)
    }

    /// Goes on with what the arm has told.
    pub(super) async fn told_in_fewer_words(&mut self, told: Told) -> Result<(), Closed> {
        let Some(under_way) = self.compacting.under_way.take() else { return Ok(()) };
        for share in told.shares {
            self.count_apart(share).await?;
        }
        let shortened = match told.words {
            Ok(text) => self.shorten(&under_way, &text).await?,
            Err(why) => Err(why),
        };
        self.tell_notices().await?;
        match shortened {
            Ok(()) => {
                self.compacting.failures = 0;
                match under_way.why {
                    Why::Asked => self.rest().await,
                    Why::Filled | Why::Refused(_) => self.make_room().await,
                }
            }
            Err(why) => self.not_shortened(under_way.why, &why).await,
        }
    }

    fn is_compacting_as_asked(&self) -> bool {
        matches!(&self.compacting.under_way, Some(UnderWay { why: Why::Asked, .. }))
    }

    /// Whether the last call has left too little room in the window of the arm in charge.
    fn is_filled(&self) -> bool {
        let window = self.way.course.as_ref().and_then(|course| course.arm.context_window);
        self.compacting.may_start(&self.way)
            && window.is_some_and(|window| compact::is_filled(window, self.context_tokens()))
    }

    /// Asks for the words.
    fn start(&mut self, why: Why, focus: String) -> Result<(), Cannot> {
        self.look_for_paths();
        let answering = self.answering();
        let arm = answering.as_ref().and_then(|name| self.way.routes.arm(name));
        let window = arm.and_then(|arm| arm.context_window);
        let (summary, rest) = self.turn.told();
        let cut = compact::cut(summary.is_some(), rest, window).ok_or(Cannot::NothingToShorten)?;
        let past = rest.iter().take(cut);
        let past: Vec<Arc<Message>> = summary.into_iter().chain(past).cloned().collect();
        let past_tokens = compact::estimate(&past);
        let is_filled = matches!(why, Why::Filled);
        if is_filled && !compact::is_worth_it(past_tokens, window) {
            return Err(Cannot::NothingToShorten);
        }
        let (task, routes) = (self.task(), &self.way.routes);
        let tellers = routes.tellers(&task, self.way.moment(), answering.as_ref());
        if tellers.is_empty() {
            return Err(Cannot::NobodyToAsk);
        }
        if !matches!(why, Why::Asked) {
            self.compacting.started_for = Some(self.way.call());
        }
        let messages = self.turn.history().len() - rest.len() + cut;
        self.compacting.under_way = Some(UnderWay { why, messages, past_tokens, window });
        let (past, account) = (Past { messages: past, focus }, self.way.account(&self.firewall));
        self.way.prepare(Box::pin(async move {
            Prepared::Told(asked(&tellers, &past, &account).await)
        }));
        Ok(())
    }

    /// Who answers, or will probably.
    fn answering(&self) -> Option<ModelRef> {
        let course = self.way.course.as_ref().map(|course| course.arm.name());
        let before = || self.turn.history().iter().rev().find_map(|it| it.origin().cloned());
        course.or_else(|| self.way.pinned().cloned()).or_else(before)
    }

    /// Puts the words in the place of the past, where they are fewer; says why not.
    async fn shorten(
        &mut self,
        under_way: &UnderWay,
        text: &str,
    ) -> Result<Result<(), String>, Closed> {
        let Some(words) = compact::words(text, under_way.window) else {
            return Ok(Err("the model gave no summary".to_owned()));
        };
        let message = Message::user_text(prompt::summary(&words));
        let tokens = compact::estimate(&[Arc::new(message.clone())]);
        if tokens >= under_way.past_tokens {
            return Ok(Err("the model's summary is no shorter than what it stands for".to_owned()));
        }
        self.turn.shorten(message, under_way.messages);
        let rest = compact::estimate(self.turn.told().1);
        self.way.told_anew(tokens + rest, self.turn.history().len());
        let messages = under_way.messages;
        self.emit(Event::Compacted { summary: words, messages }).await?;
        Ok(Ok(()))
    }

    async fn not_shortened(&mut self, cause: Why, why: &str) -> Result<(), Closed> {
        let mut text = format!("the conversation is not shortened: {why}; it is as it was");
        if matches!(cause, Why::Asked) {
            text.push_str(". Try /compact again, or choose another model with /model.");
            self.say(NoticeLevel::Warning, &text).await?;
            return self.rest().await;
        }
        self.compacting.failures += 1;
        if self.compacting.failures == MAX_FAILURES {
            text.push_str(". It is not tried by itself any more; /compact tries it.");
        }
        self.say(NoticeLevel::Warning, &text).await?;
        match cause {
            Why::Refused(error) => {
                let hint = "/compact shortens the conversation, a model with a larger window takes it \
                            as it is, /clear begins another.";
                let error = if error.hint.is_some() { error } else { error.with_hint(hint) };
                self.inbox.push_back(Input::Model(Err(error)));
                Ok(())
            }
            Why::Asked | Why::Filled => self.make_room().await,
        }
    }

    /// Counts a call beside the conversation.
    async fn count_apart(&mut self, share: Share) -> Result<(), Closed> {
        if !share.is_estimated {
            let round = share.usage;
            let turn = self.turn.also_used(round);
            self.tell(Event::Usage { round, turn }).await?;
        }
        self.tell_costs(vec![share]).await
    }

    /// What a person asked for is over; what was said meanwhile is heard now.
    async fn rest(&mut self) -> Result<(), Closed> {
        let waiting = std::mem::take(&mut self.compacting.waiting);
        self.inbox.extend(waiting.into_iter().map(Input::Say));
        self.emit(Event::State(SessionState::Idle)).await
    }

    async fn say(&mut self, level: NoticeLevel, text: &str) -> Result<(), Closed> {
        self.emit(Event::Notice { level, text: text.to_owned() }).await
    }
}

/// Asks one arm after the other until one has told it.
async fn asked(tellers: &[Arm], past: &Past, account: &Account) -> Told {
    let (mut failures, mut shares) = (Vec::new(), Vec::new());
    for arm in tellers {
        let said = account.ask(arm, compact::request(arm, past), PATIENCE).await;
        shares.extend(said.shares);
        match said.text {
            Ok(words) => return Told { words: Ok(words), shares },
            Err(error) => failures.push(format!("{} could not tell it: {error}", arm.name())),
        }
    }
    Told { words: Err(failures.join("; ")), shares }
}
