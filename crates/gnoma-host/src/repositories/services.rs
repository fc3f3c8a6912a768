//! Checks whether a program could reach a service of the machine. If the program or the service is missing, its output
//! is the same in the sandbox as outside.

use std::{
    env,
    path::{Path, PathBuf},
};

use gnoma_core::protocol::Environment;

use crate::environment::Folders as _;

/// Programs of services that only systemd starts.
const OF_SYSTEMD: [&str; 14] = [
    "bootctl",
    "busctl",
    "coredumpctl",
    "homectl",
    "hostnamectl",
    "localectl",
    "loginctl",
    "machinectl",
    "networkctl",
    "resolvectl",
    "service",
    "systemctl",
    "systemd-analyze",
    "timedatectl",
];
/// The folder that exists if systemd runs.
const SYSTEMD: &str = "/run/systemd/system";
/// The folders where logs of systemd lie.
const JOURNALS: [&str; 3] = ["/var/log/journal", "/run/log/journal", SYSTEMD];
/// The sockets where Docker listens, and a variable that names another place.
const DOCKER: [&str; 2] = ["/var/run/docker.sock", "/run/docker.sock"];
const DOCKER_HOST: &str = "DOCKER_HOST";
/// The folders below the home where Docker listens and keeps its contexts.
const DOCKER_AT_HOME: [&str; 3] = [".docker/run", ".docker/desktop", ".docker/contexts"];

/// The places where programs and the services that they ask are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServicePlaces {
    /// The folders of programs, as in `PATH`.
    pub(super) path: String,
    /// A variable says where Docker listens.
    has_docker_host: bool,
    runtime: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl ServicePlaces {
    pub(crate) fn from_environment(environment: &Environment) -> Self {
        let folder = |variable| environment.get(variable).map(PathBuf::from);
        Self {
            path: environment.get("PATH").unwrap_or_default().to_owned(),
            has_docker_host: environment.get(DOCKER_HOST).is_some(),
            runtime: folder("XDG_RUNTIME_DIR"),
            home: environment.home(),
        }
    }
}

/// Reports whether a program is installed in one of the folders of programs and what it asks is there.
pub(super) fn can_answer(program: &str, places: &ServicePlaces) -> bool {
    let mut folders = env::split_paths(&places.path).filter(|folder| folder.is_absolute());
    if !folders.any(|folder| folder.join(program).exists()) {
        return false;
    }
    let is_there = |places: &[&str]| places.iter().any(|place| Path::new(place).exists());
    match program {
        "docker" | "docker-compose" => is_there(&DOCKER) || has_docker_elsewhere(places),
        "journalctl" => is_there(&JOURNALS),
        _ if OF_SYSTEMD.contains(&program) => is_there(&[SYSTEMD]),
        _ => true,
    }
}

fn has_docker_elsewhere(places: &ServicePlaces) -> bool {
    let below = |folder: &Option<PathBuf>, names: &[&str]| {
        folder.as_ref().is_some_and(|folder| names.iter().any(|name| folder.join(name).exists()))
    };
    places.has_docker_host
        || below(&places.runtime, &["docker.sock"])
        || below(&places.home, &DOCKER_AT_HOME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_query_needs_an_installed_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let places = &ServicePlaces { path, ..ServicePlaces::default() };
        assert!(!can_answer("lsof", places));
        std::fs::write(folder.path().join("lsof"), "").unwrap();
        assert!(can_answer("lsof", places));
        std::fs::write(folder.path().join("systemctl"), "").unwrap();
        assert_eq!(can_answer("systemctl", places), Path::new(SYSTEMD).exists());
    }
}
