//! Looks for models on servers of this machine, once or again and again beside a session. What comes or
//! goes changes the arms from the next call on.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use gnoma_core::{ModelInfo, ModelRef};
use gnoma_engine::Routes;
use gnoma_guard::firewall::Connection;
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::arms::{Made, Maker};

/// How long a server on this machine may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(3);
/// Models of one server that become arms unasked.
const MOST_MODELS: usize = 4;
/// Words in names of models that do not answer.
const MUTE: [&str; 3] = ["embed", "rerank", "whisper"];

/// What servers have, in the order they were asked, with the windows they told of.
pub(super) type Found = Vec<(ModelRef, Option<u32>)>;
/// What was published of the arms, as they are now.
pub(super) type Known = Arc<Mutex<Vec<gnoma_router::Arm>>>;

/// Asks the servers what they have. One that does not answer has nothing.
pub(super) async fn ask(providers: Vec<Connection>) -> Found {
    let asked = providers.iter().map(|provider| async move {
        let listed = timeout(PATIENCE, provider.models()).await;
        usable(&provider.facts().name, listed.ok().and_then(Result::ok).unwrap_or_default())
    });
    join_all(asked).await.concat()
}

fn usable(provider: &str, models: Vec<ModelInfo>) -> Found {
    let speaks = |model: &ModelInfo| {
        let id = model.id.to_ascii_lowercase();
        !MUTE.iter().any(|word| id.contains(word))
    };
    let name = |model: ModelInfo| {
        let window = model.context_window;
        (ModelRef { provider: provider.to_owned(), model: model.id }, window)
    };
    models.into_iter().filter(speaks).take(MOST_MODELS).map(name).collect()
}

/// Arms that are there whatever servers say, and the means to make more.
pub(super) struct Workshop {
    pub maker: Maker,
    /// Those whose servers need not be asked.
    pub arms: Found,
    /// The servers to ask.
    pub servers: Vec<String>,
    pub known: Known,
}

impl Workshop {
    /// The servers that may be asked.
    pub(super) fn providers(&mut self) -> Vec<Connection> {
        let maker = &mut self.maker;
        self.servers.iter().filter_map(|name| maker.connection(name).ok()).collect()
    }

    /// All arms, with those that were found.
    pub(super) fn made(&mut self, found: &Found) -> Vec<Made> {
        let mut names = self.arms.clone();
        for (name, window) in found {
            let is_on = self.maker.settings().arms.get(&name.to_string());
            let is_on = is_on.is_none_or(|said| said.enabled);
            match names.iter_mut().find(|(known, _)| known == name) {
                Some((_, told)) => *told = told.or(*window),
                None if is_on => names.push((name.clone(), *window)),
                None => (),
            }
        }
        let maker = &mut self.maker;
        names.iter().filter_map(|(name, told)| maker.make(name, *told).ok()).collect()
    }

    /// Puts all arms into effect, with those that were found.
    pub(super) fn settle(&mut self, routes: &Routes, found: &Found) {
        let made = self.made(found);
        self.put(routes, made);
    }

    /// Puts these arms into effect.
    pub(super) fn put(&self, routes: &Routes, made: Vec<Made>) {
        let (arms, known): (_, Vec<_>) =
            made.into_iter().map(|made| (made.arm, made.published)).unzip();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&known);
        routes.set_arms(arms, known);
    }
}

/// The looking beside a session; it ends with this.
pub struct Discovery {
    _task: JoinSet<()>,
}

impl Discovery {
    /// Looks at once, and again after each `interval`.
    pub(super) fn start(
        mut workshop: Workshop,
        routes: Arc<Routes>,
        interval: Option<Duration>,
    ) -> Self {
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut known = Found::new();
            loop {
                let found = ask(workshop.providers()).await;
                if found != known {
                    workshop.settle(&routes, &found);
                    known = found;
                }
                match interval {
                    Some(interval) => sleep(interval).await,
                    None => return,
                }
            }
        });
        Self { _task: task }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::atomic::AtomicBool};

    use gnoma_config::Sources;
    use gnoma_engine::routing::RoutingOptions;
    use gnoma_llm::catalogue::Overlay;
    use gnoma_router::{Router, Tuning};
    use gnoma_testkit::{Reply, Server};

    use super::*;
    use crate::Shared;

    fn workshop(folder: &Path, url: &str) -> Workshop {
        let text = format!("[provider.endpoints]\nhere = \"{url}/v1\"\n");
        std::fs::write(folder.join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.to_owned(), ..Sources::default() };
        let settings = gnoma_config::load(&sources).unwrap().settings;
        let named = ModelRef { provider: "here".into(), model: "named".into() };
        Workshop {
            maker: Maker::new(settings, Shared::default(), Overlay::default()),
            arms: vec![(named, None)],
            servers: vec!["here".to_owned()],
            known: Known::default(),
        }
    }

    #[tokio::test]
    async fn models_that_come_and_go_change_the_arms_and_those_that_are_named_stay() {
        const EVERY: Duration = Duration::from_millis(5);
        let is_there = Arc::new(AtomicBool::new(true));
        let there = Arc::clone(&is_there);
        let server = Server::start(move |_| {
            let has = there.load(std::sync::atomic::Ordering::SeqCst);
            let list = if has { r#"{"data":[{"id":"late"}]}"# } else { r#"{"data":[]}"# };
            Reply::json(200, list)
        });
        let server = server.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let workshop = workshop(folder.path(), &server.url());
        let known = Arc::clone(&workshop.known);
        let router = Router::new(Tuning::default());
        let routes = Arc::new(Routes::new(router, RoutingOptions::default()));
        let names = || {
            let arms = routes.arms();
            arms.iter().map(|arm| arm.name().to_string()).collect::<Vec<_>>()
        };
        let discovery = Discovery::start(workshop, Arc::clone(&routes), Some(EVERY));
        let both = ["here/named", "here/late"];
        timeout(PATIENCE, async {
            while names() != both {
                sleep(EVERY).await;
            }
            assert_eq!(known.lock().unwrap().len(), 2);
            is_there.store(false, std::sync::atomic::Ordering::SeqCst);
            while names() != ["here/named"] {
                sleep(EVERY).await;
            }
        })
        .await
        .unwrap();
        drop(discovery);
        sleep(EVERY * 4).await;
        let asked = server.requests().len();
        sleep(EVERY * 10).await;
        assert_eq!(server.requests().len(), asked, "it ends with its owner");
    }

    #[test]
    fn models_that_do_not_answer_are_no_arms_and_four_are_enough() {
        let info = |id: &str| ModelInfo { id: id.to_owned(), context_window: Some(4_096) };
        let models = ["nomic-embed-text", "a", "b", "Qwen-Rerank", "c", "d", "e"].map(info);
        let found = usable("ollama", models.to_vec());
        let names: Vec<_> = found.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["ollama/a", "ollama/b", "ollama/c", "ollama/d"]);
    }
}
