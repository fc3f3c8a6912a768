//! The first start within the face: what it asks to be tried and stored is handed to the desk.

use super::{State, layer::Layer};
use crate::{
    desk::Connection,
    keymap::Key,
    setup::{Setup, SetupStep},
};

impl State {
    /// Shows the first start again. Says whether there is something to start from.
    pub(crate) fn set_up(&mut self) -> bool {
        let accessible = self.accessible;
        self.layer = self.setup.found.as_ref().map(|found| Layer::setup(found, accessible));
        self.layer.is_some()
    }

    pub(super) fn setup_key(&mut self, mut setup: Setup, key: Key) {
        let step = match (self.list_action(key), key.typed()) {
            (Some(action), _) => setup.act(action),
            (None, Some(c)) => {
                setup.type_text(c.encode_utf8(&mut [0; 4]));
                SetupStep::Open
            }
            (None, None) => SetupStep::Open,
        };
        self.setup_step(setup, step);
    }

    fn setup_step(&mut self, mut setup: Setup, step: SetupStep) {
        match step {
            SetupStep::Open => self.layer = Some(Layer::Setup(setup)),
            SetupStep::Told(lines) => {
                self.layer = Some(Layer::Setup(setup));
                self.say_choice(lines);
            }
            SetupStep::Try(connection) => {
                // First it is shown that it is tried: see the next tick.
                self.layer = Some(Layer::Setup(setup));
                self.setup.to_try = Some(connection);
            }
            SetupStep::Keep(connection) => {
                let outcome = self.desk.keep(&connection);
                if let Ok(text) = &outcome {
                    self.note(text);
                }
                let next = setup.kept(outcome);
                self.setup_step(setup, next);
            }
            SetupStep::Done(again) => self.again(again),
            SetupStep::Left => {
                self.note("no provider is set up; /provider chooses one, Ctrl+D quits");
            }
        }
    }

    pub(super) fn try_connection(&mut self, connection: &Connection) {
        let outcome = self.desk.test(connection);
        if let Some(Layer::Setup(setup)) = &mut self.layer {
            setup.tried(outcome);
        }
    }
}
