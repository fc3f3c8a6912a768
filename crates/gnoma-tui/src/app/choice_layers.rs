//! Lists, fields and questions of the program itself: they cover the editor and take the keys.

use std::sync::Arc;

use gnoma_core::{
    ThinkingMode,
    message::ModelRef,
    protocol::{self, Request, Setting},
    session::PermissionAnswer,
};

use super::{
    State,
    layer::{FieldPurpose, Layer, LayerChoice},
};
use crate::{
    ask::Purpose,
    commands,
    composer::{Composer, Draft, KeyOutcome},
    effect::Effect,
    keymap::{Action, Code, Context, Key},
    own_themes::ThemeSet,
    picker::{Picker, PickerOutcome, Row},
};

impl State {
    /// Offers a list in which each row has its choice. A filter that fits one row only takes it.
    pub(crate) fn open_picker(&mut self, title: &str, rows: Vec<(Row, LayerChoice)>, filter: &str) {
        let (rows, choices): (Vec<Row>, Vec<LayerChoice>) = rows.into_iter().unzip();
        let list = Picker::new(title, rows).with_filter(filter).by_line(self.accessible);
        self.layer = Some(Layer::Pick { list, choices });
    }

    /// Offers what fits an argument; where nothing does, says so and leaves the keys to the editor.
    pub(crate) fn pick_or_say(
        &mut self,
        title: &str,
        what: &str,
        rows: Vec<(Row, LayerChoice)>,
        argument: &str,
    ) {
        self.open_picker(title, rows, argument);
        let is_empty = |layer: &mut Layer| matches!(layer, Layer::Pick { list, .. } if list.match_count() == 0);
        if !argument.is_empty() && self.layer.take_if(is_empty).is_some() {
            self.show_hint(format!("No {what} matches `{argument}`"));
        }
    }

    /// Offers a list that more is going to come to, from who is named.
    pub(crate) fn pick_growing(
        &mut self,
        title: &str,
        rows: Vec<(Row, LayerChoice)>,
        from: &'static str,
    ) {
        let (rows, choices): (Vec<Row>, Vec<LayerChoice>) = rows.into_iter().unzip();
        self.layer =
            Some(Layer::Pick { list: Picker::new(title, rows).with_pending_rows(from), choices });
    }

    /// Puts all rows into the list that waits for them, if it is open still.
    pub(crate) fn fill_picker(&mut self, rows: Vec<(Row, LayerChoice)>) {
        let Some(Layer::Pick { list, choices }) = &mut self.layer else { return };
        if list.is_growing() {
            let (rows, of_rows): (Vec<Row>, Vec<LayerChoice>) = rows.into_iter().unzip();
            *choices = of_rows;
            list.replace_rows(rows);
        }
    }

    pub(crate) fn is_accessible(&self) -> bool {
        self.accessible
    }

    /// Takes what an argument names, by name or number; else offers a list, with `first` before all
    /// others.
    pub(crate) fn choose_offer(
        &mut self,
        what: &str,
        offers: Vec<protocol::Choice>,
        first: Option<(Row, LayerChoice)>,
        argument: &str,
        choice: fn(protocol::Choice) -> LayerChoice,
    ) {
        if let Some(offer) = find_offer(&offers, argument) {
            return self.apply_choice(choice(offer.clone()));
        }
        // Who opens the session knows whether there is such a model, and which one is near.
        let is_open = what == "model";
        if offers.is_empty() && argument.is_empty() {
            return self.show_hint(match what {
                "profile" => {
                    "No profile to choose from. A file profiles/NAME.toml beside your config.toml makes one"
                        .to_owned()
                }
                what => format!("No {what} to choose from"),
            });
        }
        let row = |offer: protocol::Choice| {
            let row = Row::new(offer.name.clone(), offer.about.clone()).with_current(offer.current);
            (row, choice(offer))
        };
        let rows = first.into_iter().chain(offers.into_iter().map(row)).collect();
        self.open_picker(&format!("Choose the {what}"), rows, argument);
        if let Some(Layer::Pick { list, .. }) = &self.layer
            && list.match_count() == 0
        {
            self.layer = None;
            if is_open {
                let name = argument.to_owned();
                return self.apply_choice(choice(protocol::Choice {
                    name,
                    ..protocol::Choice::default()
                }));
            }
            self.show_hint(format!("Unknown {what} `{argument}`. /{what} lists them"));
        }
    }

    /// Asks one model only from the next turn on, or lets the router choose again.
    pub(crate) fn pin_model(&mut self, arm: Option<ModelRef>) {
        // The session says who answers from the next turn on.
        if let Some(arm) = &arm {
            self.calls_model(arm.to_string());
        }
        self.routes.pinned.clone_from(&arm);
        self.facts.chooses |= arm.is_none();
        self.send_request(Request::Pin { arm }, Purpose::Order);
    }

    /// Changes how much models think, from the next call on.
    pub(crate) fn set_thinking(&mut self, thinking: Option<ThinkingMode>) {
        self.show_hint(match thinking {
            None => "Thinking as much as your settings say".to_owned(),
            Some(ThinkingMode::Off) => "Thinking off".to_owned(),
            Some(ThinkingMode::Adaptive) => "Thinking as much as each task needs".to_owned(),
            Some(ThinkingMode::Tokens(tokens)) => {
                let s = if tokens == 1 { "" } else { "s" };
                format!("Thinking with about {tokens} token{s}")
            }
        });
        self.send_request(Request::SetThinking { thinking }, Purpose::Order);
    }

    /// The next way to think: off, adaptive, as your settings say.
    pub(super) fn cycle_thinking(&mut self) {
        self.set_thinking(match self.session.view.thinking {
            None => Some(ThinkingMode::Off),
            Some(ThinkingMode::Off) => Some(ThinkingMode::Adaptive),
            Some(ThinkingMode::Adaptive | ThinkingMode::Tokens(_)) => None,
        });
    }

    pub(crate) fn ask_confirmation(&mut self, question: &str, choice: LayerChoice) {
        self.layer = Some(Layer::Confirm { question: question.to_owned(), choice });
    }

    /// Does what was chosen.
    pub(crate) fn apply_choice(&mut self, choice: LayerChoice) {
        match choice {
            LayerChoice::Switch(request) => self.switch_session(request),
            LayerChoice::Report(request) => self.send_request(request, Purpose::Report("")),
            LayerChoice::Write(text) => self.rewrite_input(&text),
            LayerChoice::Task(usage) => commands::choose_task(self, &usage),
            LayerChoice::Pin(arm) => self.pin_model(arm),
            LayerChoice::Mode(mode) => self.choose_mode(mode),
            LayerChoice::Thinking(thinking) => self.set_thinking(thinking),
            LayerChoice::Theme(name) => self.paint_with(&name),
            LayerChoice::Edit(setting) => self.edit_setting(setting),
            LayerChoice::Set { key, value } => self.change_setting(&key, &value),
            LayerChoice::Rewind { turns, prompt } => self.pick_rewind(turns, prompt),
        }
    }

    fn paint_with(&mut self, name: &str) {
        if !self.themes().names().any(|known| known == name) {
            return self.reject_theme(name);
        }
        name.clone_into(&mut self.theme);
        self.emit(Effect::Theme(name.to_owned()));
        self.keep_setting("tui.theme", name);
    }

    /// Offers these themes; that of the settings is in use, and what is wrong with it is said.
    pub fn use_themes(&mut self, themes: Arc<ThemeSet>) {
        let mut faults = themes.faults_of(&self.theme);
        let is_known = themes.names().any(|known| known == self.theme);
        if !is_known && faults.is_empty() && !self.theme.is_empty() {
            faults.push(format!("there is no theme `{}`; /theme lists them", self.theme));
        }
        for fault in faults {
            self.show_warning(&fault);
        }
        self.window.themes = themes;
    }

    /// Returns the themes that there are.
    pub(crate) fn themes(&self) -> Arc<ThemeSet> {
        Arc::clone(&self.window.themes)
    }

    /// Says that there is no such theme, or what is wrong with it.
    pub(crate) fn reject_theme(&mut self, name: &str) {
        let themes = self.themes();
        let faults = themes.faults_of(name).join("; ");
        let known: Vec<&str> = themes.names().collect();
        self.show_hint(if faults.is_empty() {
            format!("Unknown theme `{name}`. Themes: {}", known.join(", "))
        } else {
            faults
        });
    }

    /// Changes a setting for the sessions to come.
    pub(crate) fn change_setting(&mut self, key: &str, value: &str) {
        // These two hold at once, as with /theme and /vim.
        match (key, value) {
            ("tui.theme", name) => self.paint_with(name),
            ("tui.vim", "true" | "false") => self.use_vim(value == "true"),
            _ => self.store_setting(key, value, " (from the next session on)"),
        }
    }

    /// Turns vim's keys on or off, now and in the sessions to come.
    pub(crate) fn use_vim(&mut self, on: bool) {
        self.composer.set_vim(on);
        let (value, more) =
            if on { ("true", ": vim keys are on") } else { ("false", ": vim keys are off") };
        self.store_setting("tui.vim", value, more);
    }

    /// Keeps what holds already.
    pub(crate) fn keep_setting(&mut self, key: &str, value: &str) {
        self.store_setting(key, value, "");
    }

    fn store_setting(&mut self, key: &str, value: &str, more: &'static str) {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.send_request(Request::SetSetting { key, value }, Purpose::Report(more));
    }

    fn edit_setting(&mut self, setting: Setting) {
        let Setting { key, value, origin, choices } = setting;
        if choices.is_empty() {
            let title = format!("{key} (currently set by {origin})");
            self.layer = Some(Layer::field(&title, &value, FieldPurpose::Set(key)));
            return;
        }
        let row = |choice: String| {
            let row = Row::new(choice.clone(), "").with_current(choice == value);
            (row, LayerChoice::Set { key: key.clone(), value: choice })
        };
        let rows = choices.into_iter().map(row).collect();
        self.open_picker(&key, rows, "");
    }

    fn pick_rewind(&mut self, turns: usize, prompt: String) {
        self.session.rewound = Some(prompt);
        let rewind = |files, conversation| {
            LayerChoice::Switch(Request::Rewind { turns, files, conversation })
        };
        let rows = vec![
            (Row::new("files and conversation", "restore both"), rewind(true, true)),
            (Row::new("conversation", "keep the files as they are"), rewind(false, true)),
            (Row::new("files", "keep the conversation"), rewind(true, false)),
        ];
        self.open_picker("Rewind", rows, "");
    }

    /// Puts a text into the editor; what stood there can be found in the history.
    pub(crate) fn write_instead(&mut self, draft: Draft) {
        let before = self.composer.take_draft();
        self.composer.restore_draft(draft);
        self.save_prompt_and_end_browsing(&before.text);
        self.schedule_save();
    }

    /// A key for what is over the editor.
    pub(super) fn layer_key(&mut self, layer: Layer, key: Key) {
        match layer {
            Layer::Pick { list, choices } => self.list_key(list, choices, key),
            Layer::Field { title, field, goal } => self.field_key(title, field, goal, key),
            Layer::Confirm { question, choice } => self.confirm_key(question, choice, key),
            Layer::Search(search) => self.search_key(search, key),
            Layer::Setup(setup) => self.setup_key(setup, key),
            Layer::Reader(reader) => self.reader_key(reader, key),
        }
    }

    /// A paste into what is over the editor.
    pub(super) fn layer_paste(&mut self, text: String) {
        match &mut self.layer {
            Some(Layer::Pick { list, .. }) => list.type_text(&text),
            Some(Layer::Field { field, .. }) => {
                field.insert(&text);
            }
            Some(Layer::Search(search)) => {
                text.chars().filter(|c| !c.is_control()).for_each(|c| search.add_char(c));
            }
            Some(Layer::Setup(setup)) => setup.paste(&text),
            // A question of yes or no has no use for it, and it must not be lost.
            Some(Layer::Confirm { .. } | Layer::Reader(_)) | None => self.written_paste(text),
        }
    }

    /// Returns the action that a key asks for in a list; `None` when it types.
    pub(super) fn list_action(&self, key: Key) -> Option<Action> {
        let typed = key.typed_char().is_some();
        self.keymap
            .action_here(Context::Picker, key)
            .or_else(|| self.keymap.action(Context::Composer, key).filter(|_| !typed))
    }

    fn list_key(&mut self, mut list: Picker, choices: Vec<LayerChoice>, key: Key) {
        let picked = match (self.list_action(key), key.typed_char()) {
            (Some(action), _) => list.apply_action(action),
            (None, Some(c)) => {
                list.type_text(c.encode_utf8(&mut [0; 4]));
                PickerOutcome::Open
            }
            (None, None) => PickerOutcome::Open,
        };
        match picked {
            PickerOutcome::Open => self.layer = Some(Layer::Pick { list, choices }),
            PickerOutcome::Explained(lines) => {
                self.layer = Some(Layer::Pick { list, choices });
                self.say_choice(lines);
            }
            PickerOutcome::Nothing if self.accessible => self.show_hint("Nothing selected"),
            PickerOutcome::Nothing => (),
            PickerOutcome::Row(row) => {
                if let Some(choice) = choices.into_iter().nth(row) {
                    self.apply_choice(choice);
                }
            }
        }
    }

    fn field_key(&mut self, title: String, mut field: Composer, goal: FieldPurpose, key: Key) {
        match (field.press(key, &self.keymap), &goal) {
            (KeyOutcome::Wanted(Action::Send), FieldPurpose::Rule(call)) => {
                // It is there until the rule is known to be one.
                let (call, written) = (call.clone(), field.draft().text);
                self.layer = Some(Layer::Field { title, field, goal });
                self.allow_as_written(&call, written.trim());
            }
            (KeyOutcome::Wanted(Action::Queue), FieldPurpose::Rule(call)) => {
                let call = call.clone();
                self.layer = Some(Layer::Field { title, field, goal });
                self.next_scope(&call);
            }
            (KeyOutcome::Wanted(Action::Send), _) => {
                self.submit_field(goal, &field.take_draft().text);
            }
            (KeyOutcome::Wanted(Action::Stop | Action::Interrupt), _) => {
                self.leave_field(&goal, field);
            }
            (
                KeyOutcome::Changed
                | KeyOutcome::Moved
                | KeyOutcome::Wanted(_)
                | KeyOutcome::Ignored,
                _,
            ) => {
                self.layer = Some(Layer::Field { title, field, goal });
            }
        }
    }

    fn submit_field(&mut self, goal: FieldPurpose, text: &str) {
        match goal {
            FieldPurpose::Refuse(call) => {
                self.save_prompt_and_end_browsing(text);
                self.answer_question(
                    call,
                    PermissionAnswer::Deny { reason: text.trim().to_owned() },
                );
            }
            FieldPurpose::Reply(call) => {
                self.save_prompt_and_end_browsing(text);
                self.answer_question(call, PermissionAnswer::Text { text: text.trim().to_owned() });
            }
            FieldPurpose::Part(call) => self.keep_part(call, text),
            // It is only left by an answer; see `field_key`.
            FieldPurpose::Rule(_) => (),
            FieldPurpose::Set(key) => self.change_setting(&key, text.trim()),
            FieldPurpose::Bypass => self.confirm_bypass(text),
        }
    }

    /// A field is left; the reason for a refusal is a text of its own worth and is not thrown away.
    fn leave_field(&mut self, goal: &FieldPurpose, mut field: Composer) {
        match goal {
            FieldPurpose::Refuse(_) | FieldPurpose::Reply(_) => {
                self.rescue_draft(field.take_draft());
            }
            FieldPurpose::Rule(_)
            | FieldPurpose::Part(_)
            | FieldPurpose::Set(_)
            | FieldPurpose::Bypass => (),
        }
    }

    /// The question that an answer is being written for is gone.
    pub(super) fn rescue_reason(&mut self) {
        let answer = self.layer.take_if(|layer| layer.is_answer());
        if let Some(Layer::Field {
            mut field,
            goal: FieldPurpose::Refuse(_) | FieldPurpose::Reply(_),
            ..
        }) = answer
        {
            self.rescue_draft(field.take_draft());
        }
    }

    /// Keeps a text that has lost its place: in the editor where nothing is written, and in the
    /// history.
    fn rescue_draft(&mut self, draft: Draft) {
        self.save_prompt_and_end_browsing(&draft.text);
        if self.composer.is_empty() {
            self.composer.restore_draft(draft);
            self.schedule_save();
        }
    }

    fn confirm_key(&mut self, question: String, choice: LayerChoice, key: Key) {
        self.writing.ends_line = self.accessible && key != Key::plain(Code::Enter);
        let action = self.keymap.action(Context::Permission, key);
        match action {
            Some(Action::AllowOnce | Action::Accept) => self.apply_choice(choice),
            Some(Action::Refuse | Action::Stop | Action::Interrupt) => (),
            _ => {
                self.layer = Some(Layer::Confirm { question, choice });
                self.show_hint("Type y or n");
            }
        }
    }
}

/// Finds the offer that an argument names: by its name, by the last part of its name, or by its number.
fn find_offer<'a>(offers: &'a [protocol::Choice], argument: &str) -> Option<&'a protocol::Choice> {
    let is_meant = |name: &str| {
        name == argument || name.rsplit_once('/').is_some_and(|(_, last)| last == argument)
    };
    let named = offers.iter().find(|offer| is_meant(&offer.name));
    named.or_else(|| {
        let number = argument.parse::<usize>().ok()?;
        offers.get(number.checked_sub(1)?)
    })
}
