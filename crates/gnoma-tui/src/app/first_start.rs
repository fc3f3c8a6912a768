//! The first start within the view: what it asks to be tried and stored is asked of the host.

use gnoma_core::protocol::{Choice, Connection, FoundProviders, Request, RequestError, Switch};

use super::{State, layer::Layer, parts::LookUpTarget};
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

    /// Looks up which providers are set up, to add one or to repair one.
    pub(crate) fn look_up_providers(&mut self, wanted: &str) {
        self.look_up(LookUpTarget::Connections, Request::Providers, wanted);
    }

    /// Offers to add a provider or to enter another key for one of those that are set up.
    pub(crate) fn offer_connections(&mut self, existing: &[Choice], wanted: &str) {
        let hosted = self.session.view.info.connectable.clone();
        let found = match &self.setup.found {
            Some(found) => found.clone(),
            None => FoundProviders { providers: hosted, ..FoundProviders::default() },
        };
        let existing: Vec<(String, String)> =
            existing.iter().map(|known| (known.name.clone(), known.about.clone())).collect();
        let is_first = self.setup.found.is_some() && existing.is_empty();
        if !is_first && !wanted.is_empty() && !Setup::can_offer(&found, &existing, wanted) {
            return self.show_hint(format!("Unknown provider `{wanted}`. /login lists them"));
        }
        self.layer = Some(if is_first {
            Layer::setup(&found, self.accessible)
        } else {
            Layer::Setup(Setup::with_existing_providers(&found, &existing, self.accessible, wanted))
        });
    }

    /// Offers to enter the key of the provider that a model needs, if it is one that wants a key and has none. Says
    /// whether it did.
    pub(super) fn offer_key_for(&mut self, model: &str) -> bool {
        let Some((provider, _)) = model.split_once('/') else { return false };
        let can_connect = self.session.view.info.connectable.iter().any(|name| name == provider);
        if can_connect {
            self.setup.wanted_model = Some(model.to_owned());
            self.look_up_providers(provider);
        }
        can_connect
    }

    pub(super) fn setup_key(&mut self, mut setup: Setup, key: Key) {
        let step = match (self.list_action(key), key.typed_char()) {
            (Some(action), _) => setup.apply_action(action),
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
            SetupStep::Use(provider) => {
                let wanted = self.setup.wanted_model.take();
                let wanted = wanted
                    .filter(|model| model.split_once('/').is_some_and(|(of, _)| of == provider));
                self.switch_session(Request::Switch(match wanted {
                    Some(model) => Switch::Model(model),
                    None => Switch::Provider(provider),
                }));
            }
            SetupStep::Remove => self.look_up(LookUpTarget::Removable, Request::Providers, ""),
            SetupStep::Demo => {
                self.layer = Some(Layer::Setup(setup));
                self.emit(Effect::Demo);
            }
            SetupStep::Left if setup.is_again() => self.setup.wanted_model = None,
            SetupStep::Left => {
                self.append_note("no provider is set up yet. /login adds one");
            }
        }
    }

    /// A connection was stored, or not.
    pub(super) fn on_connection_saved(
        &mut self,
        connection: &Connection,
        outcome: Result<String, RequestError>,
    ) {
        if let Ok(text) = &outcome {
            self.append_note(text);
        }
        if let Some(Layer::Setup(mut setup)) =
            self.layer.take_if(|layer| matches!(layer, Layer::Setup(_)))
        {
            let next = setup.on_saved(connection, outcome);
            self.setup_step(setup, next);
        }
    }
}
