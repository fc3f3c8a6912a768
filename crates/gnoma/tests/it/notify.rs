//! Notifications by a command and by ntfy, as both get them.

use gnoma_testkit::{Reply, Server};
use serde_json::Value;

use crate::support::{World, exists, says};

/// The form of a key that the firewall knows.
const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn ntfy() -> Server {
    Server::start(|_| Reply::text(200, "{}")).unwrap()
}

fn configure(world: &World, topic: &str, more: &str) {
    world.configure(&format!(
        "{more}\n[notify]\nntfy = \"{topic}\"\nntfy_token = \"tk_mine\"\nafter = \"0s\"\n\
         command = \"cat > told.json\"\n"
    ));
}

#[tokio::test]
async fn ntfy_notification_has_only_names_and_times() {
    let server = ntfy();
    let world = World::new([says("the words of a model")]);
    configure(&world, &format!("{}/topic", server.url()), "");
    let run = world.run(&["the words of a person"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let request = &requests[0];
    assert_eq!((request.path(), request.header("title")), ("/topic", Some("gnoma")));
    assert_eq!(request.header("authorization"), Some("Bearer tk_mine"));
    let text = String::from_utf8_lossy(&request.body);
    assert!(text.starts_with("gnoma is done in "), "{text}");
    let told: Value = serde_json::from_str(&world.read("told.json")).unwrap();
    assert_eq!(told["message"], *text);
    assert_eq!(told["hook_event_name"], "Notification");
    assert_eq!(
        (&told["notification_type"], &told["outcome"]),
        (&"turn_ended".into(), &"complete".into())
    );
    assert!(!told.to_string().contains("the words of"), "{told}");
    let doctor = world.run(&["doctor"]).await.out;
    assert!(doctor.contains(&format!("ntfy: sent to {}\n", server.url())), "{doctor}");
}

#[tokio::test]
async fn no_notification_for_short_turns_incognito_or_project_settings() {
    let server = ntfy();
    let topic = format!("{}/topic", server.url());
    let world = World::new([says("one"), says("two"), says("three")]);
    world.configure(&format!("[notify]\nntfy = \"{topic}\"\n"));
    world.run(&["a short turn"]).await;
    configure(&world, &topic, "");
    world.run(&["--incognito", "nothing leaves"]).await;
    world.configure("");
    std::fs::create_dir(world.project.path().join(".gnoma")).unwrap();
    let own = format!("[notify]\nntfy = \"{topic}\"\nafter = \"0s\"\ncommand = \"touch ran\"\n");
    world.write(".gnoma/config.toml", &own);
    assert_eq!(world.run(&["trust", "--yes"]).await.code, Some(0));
    let run = world.run(&["of a project"]).await;
    assert!(run.err.contains("`notify.ntfy` is ignored because it is yours to decide"), "{run:?}");
    assert!(server.requests().is_empty() && !exists(world.project.path(), "ran"));
}

#[tokio::test]
async fn failed_notification_is_reported_once_and_fails_no_turn() {
    let server = Server::start(|_| Reply::text(403, "no")).unwrap();
    let world = World::new([says("one")]);
    let topic = format!("{}/{SECRET}", server.url());
    world.configure(&format!("[notify]\nntfy = \"{topic}\"\nafter = \"0s\"\n"));
    let run = world.run(&["hello"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.err.contains(SECRET), "the address may be known to few: {run:?}");
    assert!(!String::from_utf8_lossy(&server.requests()[0].body).contains(SECRET));
}
