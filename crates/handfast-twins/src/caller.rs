//! Who is calling. A twin's identities are as simple as can be: what is shown is who it is. `renewed-alice` is Alice with
//! a token that was issued later, `phone-alice` is Alice by another OAuth client, `acme-carol` is Carol of another tenant.

use std::{cmp::Ordering, fmt};

/// The identity that a handle or a state can be bound to. Two that have one name are one, by whatever token or client.
#[derive(Debug, Clone)]
pub(crate) struct Principal {
    name: String,
    client: &'static str,
    token: String,
    connection: u16,
    /// What stands in a header that the stateless revision does not have.
    session: String,
}

impl Principal {
    pub(crate) fn new(shown: &str) -> Self {
        let (name, client) = match (shown.strip_prefix(RENEWED), shown.strip_prefix(PHONE)) {
            (Some(name), _) => (name, DESKTOP),
            (None, Some(name)) => (name, "phone"),
            (None, None) => (shown, DESKTOP),
        };
        let (token, session) = (shown.to_owned(), String::new());
        Self { name: name.to_owned(), client, token, connection: 0, session }
    }

    /// Whoever runs the process: the caller on stdio that names nobody.
    pub(crate) fn local() -> Self {
        Self::new("local")
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    /// The OAuth client by which they come.
    pub(crate) fn client(&self) -> &'static str {
        self.client
    }

    /// The same, by a request with this `Mcp-Session-Id`.
    pub(crate) fn under(&self, session: Option<&str>) -> Self {
        Self { session: session.unwrap_or_default().to_owned(), ..self.clone() }
    }

    /// The `Mcp-Session-Id` of the request, empty where there is none.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// What they showed, to the byte.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The same over this connection, by the port of the other end.
    pub(crate) fn over(self, connection: u16) -> Self {
        Self { connection, ..self }
    }

    pub(crate) fn connection(&self) -> u16 {
        self.connection
    }

    /// The tenant of whom they are a user.
    pub(crate) fn tenant(&self) -> &'static str {
        if self.name.starts_with(ACME) { "acme" } else { "home" }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Principal {}

impl PartialOrd for Principal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Principal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

const RENEWED: &str = "renewed-";
const PHONE: &str = "phone-";
const ACME: &str = "acme-";
const DESKTOP: &str = "desktop";

/// What a caller showed, by transport.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shown<'a> {
    /// The text after `Authorization: Bearer`, if any.
    Bearer(Option<&'a str>),
    /// `params._meta["io.modelcontextprotocol/principal"]`, if any.
    Claimed(Option<&'a str>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_person_has_several_tokens_and_clients() {
        let alice = Principal::new("alice");
        for same in ["renewed-alice", "phone-alice"] {
            let same = Principal::new(same);
            assert_eq!((&same, same.as_str(), same.tenant()), (&alice, "alice", "home"));
            assert_ne!(same.token(), alice.token());
        }
        assert_eq!(
            ["alice", "renewed-alice", "phone-alice"].map(|shown| Principal::new(shown).client()),
            ["desktop", "desktop", "phone"]
        );
        let carol = Principal::new("acme-carol");
        assert!(carol != alice && carol != Principal::new("carol") && carol.tenant() == "acme");
    }
}
