//! The first start within the view: what it asks to be tried and stored is asked of the host.

use gnoma_core::protocol::{Connection, Request, Switch};

use super::{State, layer::Layer};
use crate::{
    effect::Effect,
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
            (None, Some(c)) => setup.type_char(c),
            (None, None) => SetupStep::Open,
        };
        self.setup_step(setup, step);
    }

    fn setup_step(&mut self, setup: Setup, step: SetupStep) {
        match step {
            SetupStep::Open => self.layer = Some(Layer::Setup(setup)),
            SetupStep::Explained(lines) => {
                self.layer = Some(Layer::Setup(setup));
                self.say_choice(lines);
            }
            SetupStep::Try(connection) => {
                self.layer = Some(Layer::Setup(setup));
                self.try_connection(connection);
            }
            SetupStep::Keep(connection) => {
                self.layer = Some(Layer::Setup(setup));
                self.add_connection(connection);
            }
            SetupStep::Use(provider) => self.switch(Request::Switch(Switch::Provider(provider))),
            SetupStep::Demo => {
                self.layer = Some(Layer::Setup(setup));
                self.emit(Effect::Demo);
            }
            SetupStep::Left => {
                self.note("No provider set up. Choose one with /provider, or quit with Ctrl+D");
            }
        }
    }

    /// A connection was stored, or not.
    pub(super) fn added(&mut self, connection: &Connection, outcome: Result<String, String>) {
        if let Ok(text) = &outcome {
            self.note(text);
        }
        if let Some(Layer::Setup(mut setup)) =
            self.layer.take_if(|layer| matches!(layer, Layer::Setup(_)))
        {
            let next = setup.kept(connection, outcome);
            self.setup_step(setup, next);
        }
    }
}
