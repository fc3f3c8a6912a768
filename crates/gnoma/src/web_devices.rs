//! The devices with a link of their own: one device, one token, which is listed and can be revoked alone.
//!
//! A device's token follows from the person's token and from the line of the device in a file, so that the file holds no
//! secret and new links end the devices' links too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_core::{bounded_file, private_file};
use gnoma_host::{HostError, clock};
use gnoma_web::Token;

/// The file of the devices, in the folder of what is kept.
const DEVICES_FILE: &str = "web.devices";
/// Most devices.
const MAX_DEVICES: usize = 32;
/// Most characters of a name.
const MAX_NAME_CHARS: usize = 40;
/// Most bytes of the file that are read.
const MAX_FILE_BYTES: u64 = 16_384;

/// A device with a link of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    name: String,
    /// The time at which it was added, in milliseconds since 1970.
    added_ms: i64,
}

impl Device {
    /// Returns the token of the device, which follows from the person's.
    pub(crate) fn token(&self, own: &Token) -> Token {
        own.for_device(&self.to_line())
    }

    fn to_line(&self) -> String {
        format!("{} {}", self.added_ms, self.name)
    }

    fn from_line(line: &str) -> Option<Self> {
        let (added_ms, name) = line.split_once(' ')?;
        Some(Self { name: parse_name(name).ok()?, added_ms: added_ms.parse().ok()? })
    }
}

/// Returns the file of the devices in `folder`.
pub(crate) fn devices_file(folder: &Path) -> PathBuf {
    folder.join(DEVICES_FILE)
}

/// The name cannot be a device's: it is empty, too long or has another character.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("a device's name has at most {MAX_NAME_CHARS} letters, digits, `-`, `_` and `.`")]
pub(crate) struct DeviceNameError;

gnoma_core::debug_as_display!(DeviceNameError);

/// Parses the name of a device: at most 40 letters, digits, `-`, `_` and `.`.
pub(crate) fn parse_name(name: &str) -> Result<String, DeviceNameError> {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || !is_plain {
        return Err(DeviceNameError);
    }
    Ok(name.to_owned())
}

/// Reads the devices in `folder`; none where the file cannot be read. Lines that are none are skipped.
pub(crate) fn read_devices(folder: &Path) -> Vec<Device> {
    load_devices(folder).unwrap_or_default()
}

fn load_devices(folder: &Path) -> Result<Vec<Device>, HostError> {
    let path = devices_file(folder);
    let text = bounded_file::read_text(&path, MAX_FILE_BYTES).map_err(|error| {
        HostError::failure(format!("the devices cannot be read at {}: {error}", path.display()))
    })?;
    Ok(text.iter().flat_map(|text| text.lines()).filter_map(Device::from_line).collect())
}

/// Returns the device of a name; a new one is added.
///
/// # Errors
/// There are too many, or the file cannot be written.
pub(crate) fn add_device(folder: &Path, name: &str) -> Result<Device, HostError> {
    let mut devices = load_devices(folder)?;
    if let Some(device) = devices.iter().find(|device| device.name == name) {
        return Ok(device.clone());
    }
    if devices.len() >= MAX_DEVICES {
        let remedy = "revoke one with `gnoma web --revoke NAME`; `gnoma web --devices` lists them";
        let cause = format!("{MAX_DEVICES} devices have a link already");
        return Err(HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) });
    }
    let device = Device { name: name.to_owned(), added_ms: clock::now_ms() };
    devices.push(device.clone());
    save_devices(folder, &devices)?;
    Ok(device)
}

/// Takes the link of a device away.
///
/// # Errors
/// No device has this name, or the file cannot be written.
pub(crate) fn revoke_device(folder: &Path, name: &str) -> Result<(), HostError> {
    let devices = load_devices(folder)?;
    let left: Vec<_> = devices.iter().filter(|device| device.name != name).cloned().collect();
    if left.len() == devices.len() {
        let remedy = "`gnoma web --devices` lists those that have";
        let cause = format!("no device `{name}` has a link");
        return Err(HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) });
    }
    save_devices(folder, &left)
}

/// Returns the list of devices for people.
pub(crate) fn describe_devices(folder: &Path) -> String {
    let now_ms = clock::now_ms();
    let line = |device: &Device| {
        format!("{}  added {}", device.name, clock::time_near(device.added_ms, now_ms))
    };
    let lines: Vec<String> = read_devices(folder).iter().map(line).collect();
    match lines[..] {
        [] => "no device has a link of its own; `gnoma web --device NAME` makes one".to_owned(),
        _ => lines.join("\n"),
    }
}

fn save_devices(folder: &Path, devices: &[Device]) -> Result<(), HostError> {
    let path = devices_file(folder);
    let lines: String = devices.iter().map(|device| device.to_line() + "\n").collect();
    let saved = match lines.as_str() {
        "" => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        lines => private_file::replace(&path, lines.as_bytes()),
    };
    saved.map_err(|error| {
        HostError::failure(format!("the devices cannot be saved at {}: {error}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_added_once_listed_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let own = Token::from_random([7; 32]);
        let phone = add_device(folder.path(), "phone").unwrap();
        let tablet = add_device(folder.path(), "tablet").unwrap();
        assert_eq!(add_device(folder.path(), "phone").unwrap(), phone);
        assert_ne!(phone.token(&own), tablet.token(&own));
        assert_ne!(phone.token(&own), phone.token(&Token::from_random([8; 32])));
        assert!(describe_devices(folder.path()).starts_with("phone  added "));
        revoke_device(folder.path(), "phone").unwrap();
        assert!(revoke_device(folder.path(), "phone").is_err());
        assert_eq!(read_devices(folder.path()), [tablet]);
        let again = Device { added_ms: phone.added_ms + 1, ..phone.clone() };
        assert_ne!(again.token(&own), phone.token(&own), "a revoked token never comes back");
        revoke_device(folder.path(), "tablet").unwrap();
        assert!(!devices_file(folder.path()).exists());
    }

    #[test]
    fn names_of_devices_are_plain() {
        for name in ["phone", "my-phone_2", "Günters.Handy"] {
            assert!(parse_name(name).is_ok(), "{name}");
        }
        for name in ["", "a b", "a\nb", "a/b", &"x".repeat(41)] {
            assert!(parse_name(name).is_err(), "{name}");
        }
    }
}
