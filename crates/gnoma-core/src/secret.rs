//! `Secret<T>`: a value such as an API key that never shows in Debug, logs or errors.

use std::fmt;

use zeroize::Zeroize;

/// A secret: not printable, not serialisable, wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Wraps `value` as a secret.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Call it only where the secret is handed to its destination.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_debug_output_is_redacted() {
        assert_eq!(format!("{:?}", Secret::new("sk-live-1".to_owned())), "***");
    }
}
