//! Looks for models on servers of this machine, once or beside a session while it is in use. What comes
//! or goes changes the arms from the next call on.

use std::{sync::Arc, time::Duration};

use futures_util::future::{join_all, select_all};
use gnoma_core::{ModelInfo, ModelRef, sync::Mutex, task::box_future};
use gnoma_engine::Routes;
use gnoma_guard::firewall::Connection;
use gnoma_router::Arm;
use tokio::{sync::watch, task::JoinSet};

use super::arms::ArmFactory;
use crate::model_list::{ModelList, ModelListViewer};

/// Models of one server that become arms unasked.
const MOST_MODELS: usize = 4;
/// Words in names of models that do not answer.
const MUTE: [&str; 3] = ["embed", "rerank", "whisper"];

/// The models that servers have, in the order the servers were asked, with what they told about each.
pub(super) type FoundModels = Vec<(ModelRef, ModelInfo)>;
/// The arms as they are now.
pub(super) type KnownArms = Arc<Mutex<Arc<[Arc<Arm>]>>>;

/// Returns the models that the servers have. A server that does not answer has none.
pub(super) async fn discover_models(lists: &[Arc<ModelList>]) -> FoundModels {
    let mut looks: Vec<ModelListViewer> = lists.iter().map(|list| list.request_models()).collect();
    collect_models(lists, &mut looks).await
}

async fn collect_models(lists: &[Arc<ModelList>], looks: &mut [ModelListViewer]) -> FoundModels {
    let asked = lists.iter().zip(looks);
    let asked =
        asked.map(|(list, look)| async { usable_models(list.provider(), look.models().await) });
    join_all(asked).await.concat()
}

fn usable_models(provider: &str, models: Vec<ModelInfo>) -> FoundModels {
    let speaks = |model: &ModelInfo| {
        let id = model.id.to_ascii_lowercase();
        !MUTE.iter().any(|word| id.contains(word))
    };
    let name = |model: ModelInfo| {
        (ModelRef { provider: provider.to_owned(), model: model.id.clone() }, model)
    };
    models.into_iter().filter(speaks).take(MOST_MODELS).map(name).collect()
}

/// Arms that are there whatever servers say, and the means to make more.
pub(super) struct DiscoverySources {
    pub maker: ArmFactory,
    /// Those whose servers need not be asked.
    pub arms: FoundModels,
    /// The servers to ask.
    pub servers: Vec<String>,
    pub known: KnownArms,
}

impl DiscoverySources {
    /// The models of the servers that may be asked.
    pub(super) fn model_lists(&mut self, interval: Option<Duration>) -> Vec<Arc<ModelList>> {
        let maker = &mut self.maker;
        self.servers.iter().filter_map(|name| maker.model_list(name, interval).ok()).collect()
    }

    /// All arms, with those that were found.
    pub(super) fn make_arms(&mut self, found: &FoundModels) -> Vec<(Arm, Connection)> {
        let mut names = self.arms.clone();
        for (name, new) in found {
            let is_on = self.maker.settings().arms.get(&name.to_string());
            let is_on = is_on.is_none_or(|said| said.enabled);
            match names.iter_mut().find(|(known, _)| known == name) {
                Some((_, told)) => {
                    told.context_window = told.context_window.or(new.context_window);
                    told.parameters = told.parameters.or(new.parameters);
                }
                None if is_on => names.push((name.clone(), new.clone())),
                None => (),
            }
        }
        let maker = &mut self.maker;
        names.iter().filter_map(|(name, told)| maker.make_arm(name, told).ok()).collect()
    }

    /// Puts all arms into effect, with those that were found.
    pub(super) fn apply_models(&mut self, routes: &Routes, found: &FoundModels) {
        let made = self.make_arms(found);
        self.apply_arms(routes, made);
    }

    /// Puts these arms into effect.
    pub(super) fn apply_arms(&self, routes: &Routes, made: Vec<(Arm, Connection)>) {
        routes.set_arms(made);
        *self.known.lock() = routes.arms();
    }
}

/// The looking beside a session; it ends with this.
pub struct Discovery {
    in_use: watch::Sender<bool>,
    _task: JoinSet<()>,
}

impl Discovery {
    /// Looks at once and whenever the session comes into use; and after each `interval` while it is.
    pub(super) fn start(
        mut workshop: DiscoverySources,
        routes: Arc<Routes>,
        interval: Option<Duration>,
    ) -> Self {
        let (in_use, mut is_used) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(box_future(async move {
            let lists = workshop.model_lists(interval);
            if lists.is_empty() {
                return;
            }
            let mut known = FoundModels::new();
            loop {
                let mut looks: Vec<ModelListViewer> =
                    lists.iter().map(|list| list.request_models()).collect();
                loop {
                    let found = collect_models(&lists, &mut looks).await;
                    if found != known {
                        workshop.apply_models(&routes, &found);
                        known = found;
                    }
                    if interval.is_none() {
                        return;
                    }
                    let changed =
                        select_all(looks.iter_mut().map(|look| Box::pin(look.wait_for_change())));
                    tokio::select! {
                        _ = changed => (),
                        _ = is_used.wait_for(|is_used| !is_used) => break,
                    }
                }
                drop(looks);
                if is_used.wait_for(|is_used| *is_used).await.is_err() {
                    return;
                }
            }
        }));
        Self { in_use, _task: task }
    }

    /// Tells the search whether the session is in use; otherwise it rests.
    pub(crate) fn set_used(&self, is_used: bool) {
        self.in_use.send_if_modified(|was| std::mem::replace(was, is_used) != is_used);
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::atomic::AtomicBool};

    use gnoma_config::Sources;
    use gnoma_engine::routing::RoutingPorts;
    use gnoma_llm::catalogue::Overlay;
    use gnoma_router::{Router, RouterSettings, Tuning};
    use gnoma_testkit::{Reply, Server};
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::{ProcessResources, project_settings::ProjectSettings};

    const PATIENCE: Duration = Duration::from_secs(10);

    fn workshop(folder: &Path, url: &str, shared: &ProcessResources) -> DiscoverySources {
        let text = format!("[provider.endpoints]\nhere = \"{url}/v1\"\n");
        std::fs::write(folder.join("config.toml"), text).unwrap();
        let sources = Sources { config_dir: folder.to_owned(), ..Sources::default() };
        let settings =
            ProjectSettings::from(gnoma_config::load_settings(&sources).unwrap()).routing;
        let named = ModelRef { provider: "here".into(), model: "named".into() };
        DiscoverySources {
            maker: ArmFactory::new(settings, shared.clone(), Overlay::default()),
            arms: vec![(named, ModelInfo::default())],
            servers: vec!["here".to_owned()],
            known: KnownArms::default(),
        }
    }

    #[tokio::test]
    async fn model_discovery_adds_and_removes_models_but_keeps_configured_ones() {
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
        let workshop = workshop(folder.path(), &server.url(), &ProcessResources::default());
        let known = Arc::clone(&workshop.known);
        let router = Router::new(Tuning::default());
        let routes =
            Arc::new(Routes::new(router, RouterSettings::default(), RoutingPorts::default()));
        let names = || {
            let arms = routes.arms();
            arms.iter().map(|arm| arm.id.to_string()).collect::<Vec<_>>()
        };
        let discovery = Discovery::start(workshop, Arc::clone(&routes), Some(EVERY));
        discovery.set_used(true);
        let both = ["here/named", "here/late"];
        timeout(PATIENCE, async {
            while names() != both {
                sleep(EVERY).await;
            }
            assert_eq!(known.lock().len(), 2);
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

    #[tokio::test]
    async fn server_that_lists_no_models_is_named_with_the_reason() {
        let closed = Server::start(|_| Reply::json(403, r#"{"error":"closed"}"#)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let shared = ProcessResources::default();
        let lists = workshop(folder.path(), &closed.url(), &shared).model_lists(None);
        assert!(discover_models(&lists).await.is_empty());
        let failure = lists.first().unwrap().failure().unwrap();
        assert!(failure.starts_with("here: ") && failure.contains("closed"), "{failure}");
    }

    #[tokio::test]
    async fn model_discovery_is_shared_by_sessions_and_pauses_when_unused() {
        const EVERY: Duration = Duration::from_millis(100);
        const SESSIONS: usize = 20;
        let list = |_: &_| Reply::json(200, r#"{"data":[{"id":"late"}]}"#);
        let server = Server::start(list).unwrap();
        let asked = || server.requests().len();
        let folder = tempfile::tempdir().unwrap();
        let shared = ProcessResources::default();
        let opened = || {
            let workshop = workshop(folder.path(), &server.url(), &shared);
            let router = Router::new(Tuning::default());
            let routes =
                Arc::new(Routes::new(router, RouterSettings::default(), RoutingPorts::default()));
            (Discovery::start(workshop, Arc::clone(&routes), Some(EVERY)), routes)
        };
        let sessions: Vec<_> = (0..SESSIONS).map(|_| opened()).collect();
        let use_all = |is_used| sessions.iter().for_each(|(beside, _)| beside.set_used(is_used));
        let have_all = async {
            while !sessions.iter().all(|(_, routes)| routes.arms().len() == 2) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, have_all).await.unwrap();
        assert_eq!(asked(), 1, "each looks when it is opened, and one question serves all");
        sleep(EVERY * 4).await;
        assert_eq!(asked(), 1, "nobody uses them");
        use_all(true);
        let began = std::time::Instant::now();
        sleep(EVERY * 4).await;
        let intervals = began.elapsed().as_millis() / EVERY.as_millis();
        let while_used = asked();
        assert!(while_used > 2 && while_used as u128 <= 2 + intervals, "{while_used} {intervals}");
        use_all(false);
        sleep(EVERY).await;
        let before = asked();
        sleep(EVERY * 4).await;
        assert_eq!(asked(), before, "nobody uses them any more");
        // A single one that wakes is enough.
        sessions[0].0.set_used(true);
        let again = async {
            while asked() == before {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, again).await.unwrap();
    }

    #[test]
    fn model_discovery_skips_embedding_models_and_uses_at_most_four() {
        let info = |id: &str| ModelInfo { id: id.to_owned(), ..ModelInfo::default() };
        let models = ["nomic-embed-text", "a", "b", "Qwen-Rerank", "c", "d", "e"].map(info);
        let found = usable_models("ollama", models.to_vec());
        let names: Vec<_> = found.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["ollama/a", "ollama/b", "ollama/c", "ollama/d"]);
    }
}
