//! The first start without any key and any server of a kind that gnoma knows: what is entered is
//! tried, what fails is corrected on the spot, and the session begins.

use std::{
    io::{Read as _, copy},
    net::{Shutdown, TcpListener, TcpStream},
};

use super::*;

/// The key that the server takes.
const RIGHT: &str = "made-up-right-key";

/// A server that lists models and answers, to whoever has the key.
fn guarded() -> Server {
    let answer = |request: &gnoma_testkit::Request| {
        let is_known = request
            .headers
            .iter()
            .any(|(name, value)| name == "authorization" && value == &format!("Bearer {RIGHT}"));
        if !is_known {
            return Reply::json(401, r#"{"error":{"message":"Incorrect API key provided"}}"#);
        }
        if request.path().ends_with("/models") {
            return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
        }
        says("Hello from the server.")
    };
    Server::start(answer).unwrap()
}

/// The port of a server in front of `url` that answers a greeting in TLS as plain servers do.
fn plain(url: &str) -> u16 {
    let behind = url.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let behind = behind.clone();
            thread::spawn(move || pass_on(client, &behind));
        }
    });
    port
}

fn pass_on(mut client: TcpStream, behind: &str) -> std::io::Result<()> {
    let mut first = [0];
    client.read_exact(&mut first)?;
    if first == [0x16] {
        return client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    }
    let mut server = TcpStream::connect(behind)?;
    server.write_all(&first)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let up = thread::spawn(move || {
        copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Write)
    });
    copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)?;
    up.join().ok();
    Ok(())
}

/// A world in which nothing is set up.
fn fresh(server: Server) -> World {
    let world = World::with(server);
    std::fs::remove_dir_all(world.home.path().join(".config")).unwrap();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_of_another_server_recovers_from_wrong_scheme_and_wrong_key() {
    let world = fresh(guarded());
    let address = format!("https://localhost:{}", plain(&world.server.url()));
    let person = Person::starts(&world, &[]);
    person.waits_for("Set up a provider");
    assert!(!person.sees().contains("closed"), "nothing was open: {}", person.sees());
    for offer in ["anthropic", "azure", "ollama", "llamacpp", "another server"] {
        person.waits_for(offer);
    }
    person.types("another\r");
    person.waits_for("address of the server ›");
    person.types(&format!("{address}/v1\r"));
    person.waits_for("or leave it empty");
    person.types("made-up-wrong-key\r");
    person.waits_for("h use http://");
    person.types("h");
    person.waits_for("Incorrect API key");
    person.waits_for("k enter another key");
    person.types("k");
    person.waits_for("key for local ›");
    person.types(&format!("{RIGHT}\r"));
    person.waits_for("local works: 1 model");
    person.types("\r");
    person.waits_for("Ask anything");
    person.types("hello\r");
    person.waits_for("Hello from the server.");
    assert!(!person.printed().contains("made-up"), "no key is ever shown");
    let (_, seen) = person.leaves();
    let id = seen.split("gnoma --resume ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let run = world.run(&["--resume", id.unwrap(), "and again"]).await;
    assert_eq!(run.code, Some(0), "the id on the screen is the stored one: {run:?}\n{seen}");
    assert_eq!(world.last_request()[0].1, "hello");
    let path = world.home.path().join(".config/gnoma/config.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(RIGHT) && text.contains("default = \"local\""), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_server_that_is_not_running_is_explained_and_found_elsewhere() {
    let server = Server::start(|request| {
        if request.path().ends_with("/models") {
            return Reply::json(200, r#"{"data":[{"id":"m1"}]}"#);
        }
        says("Hello from the server.")
    });
    let world = fresh(server.unwrap());
    let person = Person::starts(&world, &[]);
    person.waits_for("Set up a provider");
    person.types("llamacpp\r");
    person.waits_for("llama-server -m MODEL.gguf --jinja");
    person.types("a");
    person.waits_for("address of llamacpp › http://localhost:8080/v1");
    person.types("\x15127.0.0.1:1\r");
    person.waits_for("Start the server of `llamacpp`");
    person.types("a\x15");
    person.waits_for("address of llamacpp ›");
    person.types(&format!("{}\r", world.server.url()));
    person.waits_for("llamacpp works: 1 model");
    person.types("\r");
    person.waits_for("Ask anything");
    person.leaves();
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_file_that_is_set_in_the_window_counts_for_the_next_try() {
    let world = fresh(guarded());
    let address = format!("https://localhost:{}", plain(&world.server.url()));
    let person = Person::starts(&world, &[]);
    person.waits_for("Set up a provider");
    person.types("\x1b");
    person.waits_for("/login adds one");
    person.types("/config set network.ca_file /nosuch.pem\r");
    person.waits_for("Saved `network.ca_file`");
    person.types("/login\r");
    person.waits_for("Set up a provider");
    person.types("another\r");
    person.waits_for("address of the server ›");
    person.types(&format!("{address}/v1\r"));
    person.waits_for("or leave it empty");
    person.types("\r");
    person.waits_for("cannot read certificate authorities");
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_that_was_added_elsewhere_is_chosen_without_a_restart() {
    let world = fresh(guarded());
    let person = Person::starts(&world, &[]);
    person.waits_for("Set up a provider");
    person.types("\x1b");
    person.waits_for("/login adds one");
    let folder = world.home.path().join(".config/gnoma");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "[provider.endpoints]\nown = \"{}/v1\"\n[provider.api_keys]\nown = \"{RIGHT}\"\n",
        world.server.url()
    );
    std::fs::write(folder.join("config.toml"), text).unwrap();
    person.types("/provider own\r");
    person.waits_until("the provider", |person| {
        let seen = person.sees();
        seen.contains("own/m1") || seen.contains("model: auto")
    });
    person.types("hello\r");
    person.waits_for("Hello from the server.");
    person.leaves();
}
