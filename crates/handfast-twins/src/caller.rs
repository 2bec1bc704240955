//! Who is calling. A twin's identities are as simple as can be: what is shown is who it is.

use std::fmt;

/// The identity that a handle or a state can be bound to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Principal(String);

impl Principal {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Whoever runs the process: the caller on stdio that names nobody.
    pub(crate) fn local() -> Self {
        Self::new("local")
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What a caller showed, by transport.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'a> {
    /// The text after `Authorization: Bearer`, if any.
    Bearer(Option<&'a str>),
    /// `params._meta["io.modelcontextprotocol/principal"]`, if any.
    Claimed(Option<&'a str>),
}
