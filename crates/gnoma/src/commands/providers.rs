//! `gnoma providers`: what is configured, what answers, which models there are.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use futures_util::future::join_all;
use gnoma_config::Settings;
use gnoma_guard::firewall::Firewall;
use gnoma_llm::{KNOWN, Profile};
use gnoma_net::Http;

use super::{cwd, print};
use crate::{args::TurnArgs, guarding, report::Exit, surroundings::Surroundings, wire};

/// How long a provider may take to list its models.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Models named in a line.
const MAX_NAMED: usize = 4;

pub(crate) async fn run(args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let cwd = cwd(args, around)?;
    let loaded = wire::configuration(args, around, &cwd)?;
    let settings = &loaded.settings;
    let http = wire::http(settings);
    let firewall = guarding::firewall(settings, around)?;
    let known = KNOWN.iter().map(|known| known.name);
    let mut names: Vec<&str> = known.collect();
    let listed: BTreeSet<_> = names.iter().copied().collect();
    names.extend(
        settings
            .provider
            .endpoints
            .keys()
            .map(String::as_str)
            .filter(|name| !listed.contains(name)),
    );
    let lines =
        join_all(names.into_iter().map(|name| line(settings, &http, &firewall, name))).await;
    print(&lines.concat())
}

async fn line(settings: &Settings, http: &Http, firewall: &Firewall, name: &str) -> String {
    let mark = if settings.provider.default.as_deref() == Some(name) { '*' } else { ' ' };
    let state = match wire::profile(settings, name) {
        Err(unusable) => unusable.to_string(),
        Ok(profile) => state(profile, http, firewall).await,
    };
    format!("{mark} {name:<12} {state}\n")
}

async fn state(profile: Profile, http: &Http, firewall: &Firewall) -> String {
    let (url, variable) = (profile.base_url.clone(), profile.key_variable.clone());
    let hosted = KNOWN
        .iter()
        .any(|known| known.name == profile.name && known.base_url == url && !known.local);
    if hosted && profile.key.is_none() {
        return format!("no key: export {variable}=…");
    }
    let provider = gnoma_llm::connect(profile, http.clone());
    match tokio::time::timeout(TIMEOUT, provider.models()).await {
        Err(_) => format!("no answer from {url}"),
        Ok(Err(error)) => {
            let error = firewall.error(error);
            let text = error.to_string();
            let text = text.strip_prefix(&format!("{}: ", error.provider)).unwrap_or(&text);
            if text.contains(&url) { text.to_owned() } else { format!("{url}: {text}") }
        }
        Ok(Ok(models)) => {
            let named: Vec<_> =
                models.iter().take(MAX_NAMED).map(|model| model.id.as_str()).collect();
            let more = if models.len() > MAX_NAMED { ", …" } else { "" };
            let count = models.len();
            format!("ready at {url}, {count} models: {}{more}", named.join(", "))
        }
    }
}
