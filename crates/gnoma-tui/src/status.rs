//! The status line and `/status`: model, context meter, cost, mode. Pure: counts in, lines out.

mod cost;
mod spending;
mod usage;
mod window;

use std::collections::{BTreeMap, VecDeque};

use gnoma_core::{
    Usage,
    protocol::SessionView,
    session::{ContextUse, Fullness, PermissionMode},
};

use crate::{
    picker::truncate_line,
    text::{Line, Span, Style, TextRole},
};

pub(crate) use self::cost::MICRO_USD;
pub use self::{
    cost::{Cost, format_dollars},
    spending::SpendingParts,
    usage::render_usage,
    window::render_window_use,
};

/// Stands between two parts.
const SEPARATOR: &str = " · ";
/// Turns whose use is remembered one by one.
const MAX_RECENT: usize = 10;
/// Models whose use is remembered one by one.
const MAX_ARMS: usize = 50;
/// The rank of the queue's length: parts of a higher rank are left to a script of the person's, if there is one.
const QUEUED: u8 = 4;
/// Characters of the reason for a model in the line at the bottom.
const MAX_WHY_CHARS: usize = 48;

/// The facts that are known of a session before its first event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartFacts {
    /// The version of the program.
    pub version: String,
    /// The folder of the session, short.
    pub folder: String,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The profile of the settings, where one is in use.
    pub profile: Option<String>,
    /// `true` if nothing is stored.
    pub incognito: bool,
    /// The model that will be called first, as far as that is known.
    pub model: Option<String>,
    /// Several models can be called first: one is chosen for each turn.
    pub chooses: bool,
    /// Tokens of its window; 0 when unknown.
    pub window: u64,
    /// The mode that decides how much is asked.
    pub mode: PermissionMode,
    /// Tokens of the last call, if the conversation continues.
    pub last_call: Usage,
    /// Tokens of all calls until then.
    pub before: Usage,
}

/// The tokens, turns and costs that were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tokens of the last round.
    pub round: Usage,
    /// The fill level of the context window.
    pub context: ContextUse,
    /// Tokens of the turn that runs or ran last.
    pub turn: Usage,
    /// Tokens of all turns before that.
    pub past: Usage,
    /// Turns that are over.
    pub turns: u32,
    /// The cost of the turn that runs or ran last.
    pub turn_cost: Cost,
    /// The cost of the session.
    pub session_cost: Cost,
    /// The last turns that are over, the newest last.
    recent: VecDeque<(Usage, Cost)>,
    /// The cost of the calls of each model.
    arms: BTreeMap<String, (u64, Cost)>,
}

impl StartFacts {
    /// The facts in a session's view.
    #[must_use]
    pub fn from_view(view: &SessionView) -> Self {
        let info = view.info.clone();
        // What has told no version has told nothing yet.
        let is_told = !info.version.is_empty();
        let chooses = is_told && info.model.is_none() && info.found.is_none();
        Self {
            version: info.version,
            folder: info.folder,
            branch: info.branch,
            profile: info.profile,
            incognito: info.incognito,
            chooses,
            model: info.model,
            window: info.window.unwrap_or(0),
            mode: view.mode,
            last_call: info.last_call,
            before: info.before,
        }
    }
}

impl Counts {
    /// Returns the counts of a session so far.
    #[must_use]
    pub fn from_view(view: &SessionView) -> Self {
        let info = &view.info;
        let has_called = view.last_call != Usage::default();
        let mut past = info.before;
        past += view.usage;
        // Those of the turn that runs are told with it.
        past -= view.turn.as_ref().map_or_else(Usage::default, |turn| turn.usage);
        Self {
            round: if has_called { view.last_call } else { info.last_call },
            context: view.context,
            past,
            session_cost: Cost { micro_usd: view.micro_usd, is_partial: view.is_cost_partial },
            ..Self::default()
        }
    }

    /// The counts with which a session begins or continues.
    #[must_use]
    pub fn from_here(facts: &StartFacts) -> Self {
        Self { round: facts.last_call, past: facts.before, ..Self::default() }
    }

    /// Tokens in the context window.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        if self.context.tokens > 0 { self.context.tokens } else { self.round.total_tokens() }
    }

    /// Begins another turn, to which everything counted from now on belongs.
    pub fn begin_turn(&mut self) {
        self.past += std::mem::take(&mut self.turn);
        self.turn_cost = Cost::default();
    }

    /// A model was called. Turn and session are counted by the session itself.
    pub fn record_call(&mut self, arm: &str, call: Option<u64>, turn: u64, session: u64) {
        self.turn_cost.add(call);
        self.turn_cost.micro_usd = turn;
        self.session_cost.add(call);
        self.session_cost.micro_usd = session;
        if self.arms.len() < MAX_ARMS || self.arms.contains_key(arm) {
            let (calls, cost) = self.arms.entry(arm.to_owned()).or_default();
            *calls += 1;
            cost.add(call);
        }
    }

    /// The turn is over, and took that.
    pub fn end_turn(&mut self, usage: Usage) {
        self.turn = usage;
        self.turns += 1;
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((usage, self.turn_cost));
    }

    /// Tokens of the session.
    #[must_use]
    pub fn session_usage(&self) -> Usage {
        let mut all = self.past;
        all += self.turn;
        all
    }

    /// Reports whether any call told its cost.
    fn has_cost(&self) -> bool {
        !self.arms.is_empty() || self.session_cost != Cost::default()
    }
}

/// The state that the line at the bottom shows besides facts and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusNow {
    /// The work that the program is doing; empty when it waits.
    pub busy: String,
    /// The way to stop the program's work; empty when it waits.
    pub stop: &'static str,
    /// A hint that takes precedence over everything else.
    pub hint: Option<String>,
    /// Prompts that wait for the turn to end.
    pub queued: usize,
    /// The reason why this model was chosen; may be empty.
    pub why: String,
    /// The spending of all sessions, as far as the person wants to see it.
    pub spending: SpendingParts,
    /// The line that the person's script wrote in place of the facts.
    pub script: Option<Line>,
}

/// A part of the line; parts of a higher rank go first when there is no room.
struct Part {
    rank: u8,
    span: Span,
}

/// The line at the bottom, in at most `width` columns.
#[must_use]
pub fn render_status_line(
    facts: &StartFacts,
    counts: &Counts,
    now: &StatusNow,
    width: usize,
) -> Line {
    let mut parts = status_parts(facts, counts, now);
    let script = now.script.as_ref().filter(|_| now.hint.is_none());
    if script.is_some() {
        parts.retain(|part| part.rank <= QUEUED);
    }
    let columns = |parts: &[Part]| {
        let gaps = parts.len().saturating_sub(1) * SEPARATOR.chars().count();
        parts.iter().map(|part| part.span.width()).sum::<usize>() + gaps
    };
    while columns(&parts) > width && parts.len() > 1 {
        let ranks = parts.iter().enumerate();
        let Some((last, _)) = ranks.max_by_key(|(_, part)| part.rank) else { break };
        parts.remove(last);
    }
    let mut line = Line::default();
    for part in parts {
        if !line.spans.is_empty() {
            line.spans.push(Span::new(SEPARATOR, dim_style()));
        }
        line.spans.push(part.span);
    }
    if let Some(script) = script {
        line.spans.push(Span::new(SEPARATOR, dim_style()));
        line.spans.extend(script.spans.iter().cloned());
    }
    truncate_line(line, width)
}

fn status_parts(facts: &StartFacts, counts: &Counts, now: &StatusNow) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |rank, text: String, style| {
        if !text.is_empty() {
            parts.push(Part { rank, span: Span::new(text, style) });
        }
    };
    let accent = Style::with_ink(TextRole::Accent);
    let warning = Style::with_ink(TextRole::Warning);
    add(0, now.hint.clone().unwrap_or_default(), warning);
    add(1, now.busy.clone(), accent);
    add(8, now.stop.to_owned(), dim_style());
    add(2, format!("{} mode", facts.mode.label()), mode_style(facts.mode));
    add(3, if facts.incognito { "incognito".to_owned() } else { String::new() }, warning);
    add(QUEUED, describe_queue(now.queued), warning);
    let chosen = if facts.chooses { "model: auto" } else { "" };
    add(5, facts.model.clone().unwrap_or_else(|| chosen.to_owned()), dim_style());
    add(14, shorten_reason(&now.why), dim_style());
    let used = counts.context_tokens();
    add(
        6,
        render_context_meter(used, facts.window, counts.context.fullness),
        fullness_style(used, facts.window),
    );
    add(7, describe_cost(counts), dim_style());
    add(10, SpendingParts::describe_cost("today", now.spending.today), dim_style());
    add(11, SpendingParts::describe_cost("week", now.spending.week), dim_style());
    let cap = now.spending.cap_percent.unwrap_or(0);
    add(10, now.spending.describe_cap(), fullness_style(cap, 100));
    add(9, facts.branch.clone().unwrap_or_default(), dim_style());
    add(13, facts.folder.clone(), dim_style());
    let profile = facts.profile.as_ref().map(|name| format!("profile {name}"));
    add(12, profile.unwrap_or_default(), dim_style());
    if now.hint.is_none() && now.busy.is_empty() && counts.turns == 0 {
        add(15, "/ commands · F1 help".to_owned(), dim_style());
    }
    parts
}

/// The less is asked, the more it is seen.
fn mode_style(mode: PermissionMode) -> Style {
    match mode {
        PermissionMode::Bypass => Style::with_ink(TextRole::Warning).bold(),
        PermissionMode::AcceptEdits => Style::with_ink(TextRole::Warning),
        PermissionMode::Auto
        | PermissionMode::Default
        | PermissionMode::Plan
        | PermissionMode::Deny => Style::default(),
    }
}

/// The reason for a model, short.
fn shorten_reason(why: &str) -> String {
    let mut short: String = why.chars().take(MAX_WHY_CHARS).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    short
}

/// Describes the cost of the turn, and of the session where that is more.
fn describe_cost(counts: &Counts) -> String {
    if !counts.has_cost() {
        return String::new();
    }
    // Of a session that was opened before only the sum is known.
    let turn = counts.turn_cost.describe_amount().filter(|_| !counts.arms.is_empty());
    let session = counts.session_cost.describe_amount();
    match (turn, session) {
        (Some(turn), Some(session)) if turn != session => format!("{turn} of {session}"),
        (_, Some(cost)) => cost,
        (_, None) => String::new(),
    }
}

fn describe_queue(count: usize) -> String {
    if count == 0 { String::new() } else { format!("{count} queued") }
}

/// Describes how full the context window is; in tokens where its size is unknown.
fn render_context_meter(used: u64, window: u64, fullness: Fullness) -> String {
    let shown = match (used, window) {
        (0, _) => return String::new(),
        (_, 0) => format!("context {} tokens", format_count(used)),
        (_, _) => format_share("context ", used, window),
    };
    match fullness {
        Fullness::Ok => shown,
        Fullness::Warning => format!("{shown}, filling up"),
        Fullness::Critical => format!("{shown}, almost full"),
    }
}

/// A share in percent; empty when there is nothing to share.
fn format_share(name: &str, part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return String::new();
    }
    format!("{name}{}%", percent_of(part, whole))
}

fn percent_of(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

fn fullness_style(part: u64, whole: u64) -> Style {
    match percent_of(part, whole) {
        0..=69 => dim_style(),
        70..=89 => Style::with_ink(TextRole::Warning),
        _ => Style::with_ink(TextRole::Bad),
    }
}

/// A count in at most five characters.
#[must_use]
pub fn format_count(count: u64) -> String {
    match count {
        0..=999 => count.to_string(),
        1_000..=9_999 => format!("{}.{}k", count / 1_000, count % 1_000 / 100),
        10_000..=999_999 => format!("{}k", count / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// All that is known, one thing a line.
#[must_use]
pub fn render_details(
    facts: &StartFacts,
    counts: &Counts,
    session: &str,
    why: Option<&str>,
) -> Vec<Line> {
    let yes = |is: bool| if is { "on: nothing is saved" } else { "off" }.to_owned();
    let mut lines = vec![fact_line("version", facts.version.clone())];
    if !session.is_empty() {
        lines.push(fact_line("session", session.to_owned()));
    }
    lines.push(fact_line(
        "model",
        facts.model.clone().unwrap_or_else(|| "chosen at the first prompt".to_owned()),
    ));
    lines.extend(why.map(|why| fact_line("reason", why.to_owned())));
    lines.extend([
        fact_line("mode", facts.mode.label().to_owned()),
        fact_line("folder", facts.folder.clone()),
    ]);
    lines.extend(facts.branch.clone().map(|branch| fact_line("branch", branch)));
    lines.extend(facts.profile.clone().map(|profile| fact_line("profile", profile)));
    lines.push(fact_line("incognito", yes(facts.incognito)));
    lines.push(fact_line("context", describe_context(facts, counts)));
    lines.push(fact_line("turns", counts.turns.to_string()));
    if let Some(cost) = counts.session_cost.describe_amount().filter(|_| counts.has_cost()) {
        lines.push(fact_line("cost", cost));
    }
    lines
}

fn describe_context(facts: &StartFacts, counts: &Counts) -> String {
    let used = counts.context_tokens();
    if facts.window == 0 {
        return format!("{} tokens", format_count(used));
    }
    let percent = percent_of(used, facts.window);
    format!("{} of {} tokens ({percent}%)", format_count(used), format_count(facts.window))
}

/// A name and its value, in two columns.
#[must_use]
pub fn fact_line(name: &str, value: String) -> Line {
    Line::from([
        Span::new(format!("  {name:<15}"), dim_style()),
        Span::new(value, Style::default()),
    ])
}

fn dim_style() -> Style {
    Style::with_ink(TextRole::Dim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> StartFacts {
        StartFacts {
            folder: "~/src/gnoma".to_owned(),
            branch: Some("main".to_owned()),
            profile: Some("work".to_owned()),
            incognito: true,
            model: Some("anthropic/opus".to_owned()),
            window: 200_000,
            mode: PermissionMode::Auto,
            ..StartFacts::default()
        }
    }

    fn counts() -> Counts {
        let round = Usage { input: 4_000, cache_read: 16_000, output: 500, ..Usage::default() };
        Counts { round, turn: round, turns: 1, ..Counts::default() }
    }

    #[test]
    fn status_line_shows_model_auto_while_the_router_chooses() {
        let facts = StartFacts { model: None, chooses: true, ..facts() };
        let shown =
            render_status_line(&facts, &Counts::default(), &StatusNow::default(), 60).plain_text();
        assert!(shown.starts_with("auto mode · incognito · model: auto"), "{shown}");
    }

    #[test]
    fn status_line_drops_less_important_parts_when_narrow() {
        let why = "the cheapest that can do it".to_owned();
        let now =
            StatusNow { busy: "working 3 s".to_owned(), queued: 2, why, ..StatusNow::default() };
        let mut counts = counts();
        counts.record_call("anthropic/opus", Some(12_400), 12_400, 340_000);
        let shown = |width| render_status_line(&facts(), &counts, &now, width).plain_text();
        assert_eq!(
            shown(200),
            "working 3 s · auto mode · incognito · 2 queued · anthropic/opus · \
             the cheapest that can do it · context 10% · $0.012 of $0.340 · main · ~/src/gnoma · profile work"
        );
        assert_eq!(
            shown(100),
            "working 3 s · auto mode · incognito · 2 queued · anthropic/opus · context 10% · \
             $0.012 of $0.340"
        );
        assert_eq!(shown(46), "working 3 s · auto mode · incognito · 2 queued");
        assert_eq!(shown(8), "working…");
    }

    #[test]
    fn status_script_replaces_the_usual_line_until_a_hint() {
        let script = Some(Line::new("mine: 12 files", Style::default()));
        let now =
            StatusNow { busy: "working 3 s".to_owned(), queued: 2, script, ..StatusNow::default() };
        let shown = |now: &StatusNow, width| {
            render_status_line(&facts(), &counts(), now, width).plain_text()
        };
        assert_eq!(
            shown(&now, 80),
            "working 3 s · auto mode · incognito · 2 queued · mine: 12 files"
        );
        assert_eq!(shown(&now, 60), "working 3 s · auto mode · incognito · 2 queued · mine: 12 f…");
        let hinted = StatusNow { hint: Some("press again".to_owned()), ..now };
        assert!(shown(&hinted, 200).contains("anthropic/opus"));
    }

    #[test]
    fn counts_are_short() {
        let shown = [999, 1_250, 20_500, 1_260_000].map(format_count);
        assert_eq!(shown, ["999", "1.2k", "20k", "1.2M"]);
    }

    #[test]
    fn status_line_cost_is_short_and_marks_unknown_parts() {
        let shown = [0, 40, 1_250, 12_400, 340_900, 1_239_000, 250_000_000].map(format_dollars);
        assert_eq!(shown, ["$0", "<$0.0001", "$0.0012", "$0.012", "$0.340", "$1.23", "$250"]);
        let mut counts = Counts::default();
        counts.record_call("local/small", None, 0, 0);
        assert_eq!(describe_cost(&counts), "", "nothing is known");
        counts.record_call("anthropic/opus", Some(20_000), 20_000, 20_000);
        assert_eq!(describe_cost(&counts), "≥$0.020");
        counts.begin_turn();
        counts.record_call("anthropic/opus", Some(10_000), 10_000, 30_000);
        assert_eq!(describe_cost(&counts), "$0.010 of ≥$0.030");
    }

    #[test]
    fn cost_of_a_session_that_was_opened_before_is_shown() {
        let shown = |micro_usd, is_cost_partial| {
            let view = SessionView { micro_usd, is_cost_partial, ..SessionView::default() };
            describe_cost(&Counts::from_view(&view))
        };
        assert_eq!(shown(0, false), "");
        assert_eq!(shown(20_000, false), "$0.020");
        assert_eq!(shown(20_000, true), "≥$0.020");
        assert_eq!(shown(0, true), "");
    }

    proptest! {
        #[test]
        fn status_line_never_exceeds_the_width(width in 1_usize..200, hint in "[a-z 漢]{0,30}") {
            let now = StatusNow { hint: Some(hint), ..StatusNow::default() };
            prop_assert!(render_status_line(&facts(), &counts(), &now, width).width() <= width);
        }
    }
}
