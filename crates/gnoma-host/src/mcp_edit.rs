//! Adding MCP servers to the person's settings, and removing them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_config::paths;
use gnoma_core::{Secret, bounded_file, private_file::FileReplacement};

use crate::{HostError, Result};

/// The line that begins an entry of the list.
const HEADER: &str = "[[mcp_servers]]";

/// A server to be added.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// The name of the server.
    pub name: String,
    /// The address of the server, if it is not a program.
    pub url: Option<String>,
    /// The server's program and its arguments.
    pub command: Vec<String>,
    /// The environment variables of the server's program.
    pub env: Vec<(String, Secret<String>)>,
    /// The headers that are sent with each request to the server's address.
    pub headers: Vec<(String, Secret<String>)>,
    /// `true` if the server's program may use the network.
    pub network: bool,
}

/// Adds a server to the settings in a folder, and gives their file.
///
/// # Errors
/// There is one of that name, or the file cannot be written.
pub fn add_server(config_dir: &Path, new: &NewServer) -> Result<PathBuf> {
    let path = paths::user_file(config_dir);
    let text = read_settings(&path)?;
    if split_blocks(&text).iter().any(|block| server_name(block) == Some(&new.name)) {
        let name = &new.name;
        return Err(HostError::usage(format!(
            "there is already an MCP server `{name}`; `gnoma mcp remove {name}` removes it"
        )));
    }
    let gap = if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    write_settings(&path, &format!("{text}{gap}{}", render_entry(new)))?;
    Ok(path)
}

/// Removes a server from the settings in a folder, and gives their file.
///
/// # Errors
/// There is none of that name, or the file cannot be written.
pub fn remove_server(config_dir: &Path, name: &str) -> Result<PathBuf> {
    let path = paths::user_file(config_dir);
    let text = read_settings(&path)?;
    let all = split_blocks(&text);
    if !all.iter().any(|block| server_name(block) == Some(name)) {
        return Err(HostError::usage(format!("`{}` has no MCP server `{name}`", path.display())));
    }
    let kept: String = all.into_iter().filter(|block| server_name(block) != Some(name)).collect();
    write_settings(&path, &kept)?;
    Ok(path)
}

/// The entry as it is written.
pub(crate) fn render_entry(new: &NewServer) -> String {
    let quoted = |text: &str| gnoma_config::toml::Value::from(text).to_string();
    let mut lines = vec![HEADER.to_owned(), format!("name = {}", quoted(&new.name))];
    match (&new.url, &new.command[..]) {
        (Some(url), _) => lines.push(format!("url = {}", quoted(url))),
        (None, [program, args @ ..]) => {
            lines.push(format!("command = {}", quoted(program)));
            let args: Vec<_> = args.iter().map(|arg| quoted(arg)).collect();
            lines.push(format!("args = [{}]", args.join(", ")));
        }
        (None, []) => (),
    }
    if new.network {
        lines.push("network = true".to_owned());
    }
    for (table, pairs) in [("env", &new.env), ("headers", &new.headers)] {
        for (name, value) in pairs {
            lines.push(format!("{table}.{} = {}", quoted(name), quoted(value.expose())));
        }
    }
    format!("{}\n", lines.join("\n"))
}

/// The text, cut before each header of a table, so that the parts together are the whole. A table below
/// an entry belongs to the entry.
fn split_blocks(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') && !trimmed.starts_with("[mcp_servers.") && at > 0 {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).filter_map(|pair| text.get(pair[0]..pair[1])).collect()
}

/// The name of the server whose entry this is.
fn server_name(block: &str) -> Option<&str> {
    let mut lines = block.lines().map(str::trim);
    if lines.next()? != HEADER {
        return None;
    }
    let value = lines.find_map(|line| line.strip_prefix("name")?.trim_start().strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

pub(crate) fn read_settings(path: &Path) -> Result<String> {
    let text = bounded_file::read_text(path, paths::MAX_CONFIG_BYTES)
        .map_err(|error| HostError::usage(format!("cannot read `{}`: {error}", path.display())))?;
    Ok(text.unwrap_or_default())
}

/// Checks that the text of the settings can be used.
pub(crate) fn check_settings(text: &str) -> Result<()> {
    gnoma_config::load::check_user_file(text)
        .map_err(|error| HostError::usage(format!("nothing was written\n{error}")))
}

/// Writes the file as a whole, where what it says can be used.
pub(crate) fn write_settings(path: &Path, text: &str) -> Result<()> {
    check_settings(text)?;
    let put = || -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let before = fs::metadata(path).ok().map(|before| before.permissions());
        FileReplacement::prepare(path, text.as_bytes(), before)?.commit()
    };
    put().map_err(|error| HostError::usage(format!("cannot write `{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str) -> NewServer {
        NewServer {
            name: name.to_owned(),
            url: None,
            command: vec!["npx".to_owned(), "-y".to_owned(), "a \"b\"".to_owned()],
            env: vec![("K".to_owned(), Secret::new("v".to_owned()))],
            headers: Vec::new(),
            network: true,
        }
    }

    #[test]
    fn added_mcp_server_is_loaded_and_removal_restores_the_config_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, "# mine\n[tools]\nmax_rounds = 3\n").unwrap();
        let before = fs::read_to_string(&file).unwrap();
        add_server(folder.path(), &new("a")).unwrap();
        add_server(folder.path(), &new("b")).unwrap();
        assert!(add_server(folder.path(), &new("a")).is_err());
        let sources =
            gnoma_config::Sources { config_dir: folder.path().into(), ..Default::default() };
        let servers = gnoma_config::load_settings(&sources).unwrap().settings.mcp_servers;
        assert_eq!(servers.len(), 2);
        assert_eq!(servers[0].args, ["-y", "a \"b\""]);
        assert_eq!(servers[0].env["K"].expose(), "v");
        remove_server(folder.path(), "a").unwrap();
        remove_server(folder.path(), "b").unwrap();
        assert!(remove_server(folder.path(), "b").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap().trim(), before.trim());
    }
}
