//! The terminal and what is on it: what has happened and is not handed over yet, what is drawn, who
//! has the terminal. When to draw and what to wait for is decided here, and nothing about the
//! conversation.

use std::{
    collections::VecDeque,
    io,
    time::{Duration, Instant},
};

use gnoma_core::protocol::Request;
use rustix::process::Signal as Number;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::sleep_until,
};

use super::{
    EffectHandler, Ending, Job, Link, LoopAction, RunError, RunOptions, View,
    pace::Pace,
    size_check::{SizeCheck, SizeStep},
};
use crate::{
    frame::Size,
    input::Input,
    keymap::Key,
    screen::{Layout, Screen, Traits},
    terminal::{Signal, Terminal, TerminalEvent, TerminalInput, tell},
    theme::{Shade, Theme, ThemeError},
};

/// Inputs that are taken before a frame is drawn, so that neither a flood of keys nor one of events
/// holds up the picture.
const MAX_DRAINED: usize = 1_024;
/// Inputs that effects may lead to before a frame is drawn.
const MAX_CONSEQUENCES: usize = 256;
/// The time for which nothing is drawn after another size that was told late: the next may be there already.
const SIZE_SETTLES: Duration = Duration::from_millis(300);

/// The event that ended a wait.
enum StageWakeup {
    News(TerminalEvent),
    Link(Option<Input>),
    Job(Result<(Id, Input), JoinError>),
    Time,
}

/// The terminal and what is on it. The terminal is taken over as long as this lives.
pub struct Stage {
    screen: Screen,
    terminal: Terminal,
    options: RunOptions,
    jobs: JoinSet<Input>,
    /// The job that has the terminal.
    lent: Option<Id>,
    /// The inputs that have arrived and are not handed over yet.
    inputs: VecDeque<Input>,
    ending: Option<Ending>,
    /// The shade that the terminal reports of its background.
    background: Shade,
    /// The bytes that name the window.
    title: Vec<u8>,
    pace: Pace,
    size_check: SizeCheck,
    /// The time before which nothing is drawn.
    held_until: Option<Instant>,
    /// `true` if something may look different.
    is_stale: bool,
    /// Because of what a person did.
    is_typed: bool,
    /// `true` if something can still come from the host.
    is_linked: bool,
}

impl Stage {
    /// Takes the terminal over; nothing is shown yet.
    ///
    /// # Errors
    /// When the terminal cannot be used, or there is no such theme.
    pub fn open(options: RunOptions) -> Result<Self, RunError> {
        let shade = options.shade.unwrap_or_default();
        let theme = options.themes.resolve(options.theme_name(), shade, options.depth)?;
        let terminal = Terminal::open(options.layout, options.crash_note.clone())?;
        Ok(Self::with_terminal(terminal, theme, options))
    }

    /// Draws on a terminal that is taken over already.
    #[must_use]
    pub fn with_terminal(terminal: Terminal, theme: Theme, options: RunOptions) -> Self {
        let traits = Traits { synchronized: false, reflows: options.reflows };
        let size_check = SizeCheck::new(options.tells_size_late && options.layout != Layout::Plain);
        Self {
            screen: Screen::new(options.layout, theme, traits),
            terminal,
            options,
            jobs: JoinSet::new(),
            lent: None,
            inputs: VecDeque::new(),
            ending: None,
            background: Shade::default(),
            title: Vec::new(),
            pace: Pace::default(),
            size_check,
            held_until: None,
            is_stale: true,
            is_typed: false,
            is_linked: true,
        }
    }

    /// Shows the view until it ends. What was typed behind its last effect waits for another one, and
    /// the terminal stays taken over until then.
    ///
    /// # Errors
    /// When the terminal cannot be used, at first or any more.
    pub async fn run_view<F: View, H: EffectHandler<Effect = F::Effect>>(
        &mut self,
        link: &mut Link,
        face: &mut F,
        hands: &mut H,
    ) -> io::Result<Ending> {
        self.prepare_run()?;
        let ending = self.run_loop(link, face, hands).await;
        if ending.is_err() {
            // The terminal is gone, and no signal has told so yet.
            self.inputs.push_back(Input::Ending);
            self.hand_over(link, face, hands).unwrap_or_default();
        }
        // Where it is gone there is nothing to leave in order.
        self.close(face).unwrap_or_default();
        ending.or_else(|error| match error.raw_os_error() {
            // Written to a terminal that was closed: its signal is on the way.
            Some(code) if code == rustix::io::Errno::IO.raw_os_error() => {
                Ok(Ending::Signal(rustix::process::Signal::HUP.as_raw()))
            }
            _ => Err(error),
        })
    }

    fn prepare_run(&mut self) -> io::Result<()> {
        if !self.terminal.is_taken() {
            self.take_back()?;
        }
        self.inputs.push_front(Input::Resize(self.terminal.size()));
        self.inputs.push_front(Input::Tick(Instant::now()));
        (self.ending, self.is_linked, self.is_stale) = (None, true, true);
        Ok(())
    }

    async fn run_loop<F: View, H: EffectHandler<Effect = F::Effect>>(
        &mut self,
        link: &mut Link,
        face: &mut F,
        hands: &mut H,
    ) -> io::Result<Ending> {
        loop {
            self.hand_over(link, face, hands)?;
            if let Some(ending) = self.ending {
                return Ok(ending);
            }
            let frame_at = self.draw_when_due(face)?;
            let until = frame_at.into_iter().chain(face.next_tick()).min();
            let woke = self.wait_for_event(link, until).await;
            self.on_wakeup(woke)?;
            self.drain(link)?;
        }
    }

    async fn wait_for_event(&mut self, link: &mut Link, until: Option<Instant>) -> StageWakeup {
        let time = async {
            match until {
                Some(until) => sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            news = self.terminal.next() => StageWakeup::News(news),
            Some(result) = self.jobs.join_next_with_id() => StageWakeup::Job(result),
            input = link.next(), if self.is_linked => StageWakeup::Link(input),
            () = time => StageWakeup::Time,
        }
    }

    /// Notes what ended the wait, after the time.
    fn on_wakeup(&mut self, woke: StageWakeup) -> io::Result<()> {
        self.inputs.push_back(Input::Tick(Instant::now()));
        match woke {
            // The second: what could not be drawn meanwhile is drawn now.
            StageWakeup::Time | StageWakeup::News(TerminalEvent::Written) => {}
            StageWakeup::News(TerminalEvent::Heard(heard)) => self.on_terminal_input(heard),
            StageWakeup::News(TerminalEvent::Signal(signal)) => self.on_signal(signal)?,
            StageWakeup::Link(input) => self.on_link_input(input),
            StageWakeup::Job(result) => self.end_job(result)?,
        }
        Ok(())
    }

    /// Notes what else is there already.
    fn drain(&mut self, link: &mut Link) -> io::Result<()> {
        for _ in 0..MAX_DRAINED {
            if let Some(heard) = self.terminal.try_next() {
                self.on_terminal_input(heard);
            } else if let Some(input) = link.try_next() {
                self.inputs.push_back(input);
            } else if let Some(result) = self.jobs.try_join_next_with_id() {
                self.end_job(result)?;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn on_link_input(&mut self, input: Option<Input>) {
        self.is_linked = input.is_some();
        self.inputs.extend(input);
    }

    fn on_terminal_input(&mut self, heard: TerminalInput) {
        self.is_typed |= matches!(
            heard,
            TerminalInput::Key(_) | TerminalInput::Paste(_) | TerminalInput::Wheel(_)
        );
        let input = match heard {
            TerminalInput::Key(key) => Some(Input::Key(key)),
            TerminalInput::Paste(text) => Some(Input::Paste(text)),
            TerminalInput::PasteRefused(bytes) => Some(Input::PasteRefused(bytes)),
            TerminalInput::Wheel(rows_up) => Some(Input::Wheel(rows_up)),
            TerminalInput::Focus(true) => Some(Input::FocusGained),
            TerminalInput::Focus(false) => Some(Input::FocusLost),
            TerminalInput::Shade(shade) => self.apply_background(shade),
            TerminalInput::Synchronized => {
                self.screen.set_traits(Traits { synchronized: true, ..self.screen.traits() });
                None
            }
            TerminalInput::Size(size) => {
                self.size_check.record_answer(size, self.terminal.size(), Instant::now());
                None
            }
            TerminalInput::Answered => None,
            TerminalInput::End => self.set_ending(Ending::InputEnded),
        };
        self.inputs.extend(input);
    }

    fn on_signal(&mut self, signal: Signal) -> io::Result<()> {
        let input = match signal {
            Signal::Resize => {
                let is_late = self.size_check.is_late();
                self.held_until = is_late.then(|| Instant::now() + SIZE_SETTLES);
                Some(Input::Resize(self.terminal.size()))
            }
            // Another program that has the terminal was meant.
            Signal::Interrupt if !self.terminal.is_taken() => None,
            // Here the terminal makes a signal of a key; elsewhere somebody wants the program to end.
            Signal::Interrupt if self.options.layout == Layout::Plain => {
                Some(Input::Key(Key::with_control('c')))
            }
            Signal::Interrupt => self.set_ending(Ending::Signal(Number::INT.as_raw())),
            Signal::End(number) => self.set_ending(Ending::Signal(number)),
            Signal::Stop => {
                self.suspend()?;
                None
            }
            Signal::GoOn => {
                self.go_on()?;
                Some(Input::Resumed)
            }
        };
        self.inputs.extend(input);
        Ok(())
    }

    /// The view may still save what it has.
    fn set_ending(&mut self, ending: Ending) -> Option<Input> {
        self.ending = Some(ending);
        Some(Input::Ending)
    }

    fn apply_background(&mut self, shade: Shade) -> Option<Input> {
        self.background = shade;
        // The theme is known: it is the one that is used now.
        if let Ok(theme) = self.load_theme(self.options.theme_name()) {
            self.screen.set_theme(theme);
        }
        Some(Input::Background(shade))
    }

    /// Hands everything over and performs the effects that come of it.
    fn hand_over<F: View, H: EffectHandler<Effect = F::Effect>>(
        &mut self,
        link: &mut Link,
        face: &mut F,
        hands: &mut H,
    ) -> io::Result<()> {
        let mut left = self.inputs.len() + MAX_CONSEQUENCES;
        // What comes after the effect to quit may be meant for what comes after this run.
        while left > 0 && self.ending != Some(Ending::Quit) {
            let Some(input) = self.inputs.pop_front() else { break };
            left -= 1;
            for effect in face.on_input(input) {
                self.perform(hands.perform(effect), link)?;
            }
            self.is_stale = true;
        }
        Ok(())
    }

    fn perform(&mut self, action: LoopAction, link: &mut Link) -> io::Result<()> {
        match action {
            LoopAction::Done => {}
            LoopAction::Ask(ask) => {
                if matches!(ask.request, Request::Send { .. }) {
                    // What is answered is to be seen.
                    self.screen.scroll(-isize::MAX);
                }
                link.submit_request(ask);
            }
            LoopAction::CrashNote(text) => self.terminal.set_crash_note(text),
            LoopAction::Hear(input) => self.inputs.push_back(input),
            LoopAction::Work(job) => {
                self.jobs.spawn_blocking(job);
            }
            LoopAction::Lend(job) => self.lend_terminal(job)?,
            LoopAction::Copy(text) => self.copy(&text)?,
            LoopAction::Notify(text) => {
                let text = self.options.charset.adapt_text(&text);
                let bytes = self.options.notifier.notify(&text);
                self.write(&bytes)?;
            }
            LoopAction::Title(text) => {
                self.title = tell::title_sequence(&self.options.charset.adapt_text(&text));
                self.write_title()?;
            }
            LoopAction::Theme(name) => self.paint_with(name),
            LoopAction::Scroll(rows_up) => self.screen.scroll(rows_up),
            LoopAction::Redraw => self.screen.request_redraw(),
            LoopAction::Suspend => self.suspend()?,
            LoopAction::Quit => self.ending = Some(Ending::Quit),
        }
        Ok(())
    }

    /// Writes besides the frames; never into what another program shows, nor among plain lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.options.layout == Layout::Plain || !self.terminal.is_taken() {
            return Ok(());
        }
        self.terminal.write(bytes)
    }

    fn write_title(&mut self) -> io::Result<()> {
        let title = self.title.clone();
        self.write(&title)
    }

    /// Has the terminal again after somebody else had it, whose title may stand there.
    fn take_back(&mut self) -> io::Result<()> {
        self.terminal.take_over()?;
        self.write_title()
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        match tell::copy_sequence(text) {
            Some(bytes) => self.write(&bytes),
            None => {
                self.inputs.push_back(Input::Failed(format!(
                    "the text is too long for the terminal's clipboard, which takes {} KB",
                    tell::MAX_COPIED_BYTES / 1_000
                )));
                Ok(())
            }
        }
    }

    fn load_theme(&self, name: &str) -> Result<Theme, ThemeError> {
        let shade = self.options.shade.unwrap_or(self.background);
        self.options.themes.resolve(name, shade, self.options.depth)
    }

    fn paint_with(&mut self, name: String) {
        match self.load_theme(&name) {
            Ok(theme) => {
                self.options.theme = name;
                self.screen.set_theme(theme);
            }
            Err(error) => self.inputs.push_back(Input::Failed(error.to_string())),
        }
    }

    fn lend_terminal(&mut self, job: Job) -> io::Result<()> {
        if self.lent.is_some() {
            let what = "another program is using the terminal".to_owned();
            self.inputs.push_back(Input::Failed(what));
            return Ok(());
        }
        self.clear()?;
        self.terminal.give_back();
        self.lent = Some(self.jobs.spawn_blocking(job).id());
        Ok(())
    }

    fn end_job(&mut self, result: Result<(Id, Input), JoinError>) -> io::Result<()> {
        let (id, input) = result.unwrap_or_else(|error| {
            let what = format!("a background task failed: {error}");
            (error.id(), Input::Failed(what))
        });
        self.inputs.push_back(input);
        if self.lent == Some(id) {
            self.lent = None;
            self.is_stale = true;
            self.take_back()?;
        }
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        if !self.terminal.can_stop() {
            self.inputs.push_back(Input::Failed(
                "gnoma was not started from a shell, so it cannot be suspended; quit with /exit"
                    .to_owned(),
            ));
            return Ok(());
        }
        self.clear()?;
        self.terminal.suspend_process().or_else(|_| self.take_back())
    }

    /// The program was stopped, by us or by somebody else who did not ask.
    fn go_on(&mut self) -> io::Result<()> {
        if self.lent.is_some() {
            return Ok(());
        }
        self.screen.erase(&mut Vec::new());
        self.terminal.give_back();
        self.take_back()
    }

    fn clear(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.screen.erase(&mut bytes);
        self.terminal.write(&bytes)
    }

    /// Draws, unless the last frame is too young: then it says when to. A terminal that has not taken
    /// all of the last one yet gets no other.
    fn draw_when_due(&mut self, face: &mut impl View) -> io::Result<Option<Instant>> {
        if !self.is_stale || !self.terminal.is_taken() || self.terminal.is_clogged() {
            return Ok(None);
        }
        let now = Instant::now();
        let held = self.held_until.filter(|until| *until > now);
        if let Some(wait) = held.or_else(|| self.pace.next_frame_at(now, self.is_typed)) {
            return Ok(Some(wait));
        }
        let size = match self.size_check.step(now) {
            SizeStep::Ask(until) => {
                self.terminal.ask_size()?;
                return Ok(Some(until));
            }
            SizeStep::Wait(until) => return Ok(Some(until)),
            SizeStep::Draw(size) => size.unwrap_or_else(|| self.terminal.size()),
        };
        if self.draw(face, size)? {
            self.pace.record_frame(now);
        }
        Ok(None)
    }

    /// Says whether there was anything to paint.
    fn draw(&mut self, face: &mut impl View, size: Size) -> io::Result<bool> {
        let mut bytes = Vec::new();
        let frame = self.options.charset.adapt_frame(face.render_frame(size));
        self.screen.draw(&frame, size, &mut bytes);
        (self.is_stale, self.is_typed) = (false, false);
        self.terminal.write(&bytes)?;
        Ok(!bytes.is_empty())
    }

    /// The last frame stays on the terminal.
    fn close(&mut self, face: &mut impl View) -> io::Result<()> {
        if !self.terminal.is_taken() {
            return Ok(());
        }
        self.draw(face, self.terminal.size())?;
        let mut bytes = Vec::new();
        self.screen.close(&mut bytes);
        self.terminal.write(&bytes)
    }
}
