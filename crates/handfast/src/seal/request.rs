//! Which request a state belongs to: its method, its name and its arguments.

use serde_json::{Map, Value};

use super::canonical;

/// The requests of the protocol that may ask for more input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `tools/call`
    ToolsCall,
    /// `prompts/get`
    PromptsGet,
    /// `resources/read`
    ResourcesRead,
}

impl Method {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::PromptsGet => "prompts/get",
            Self::ResourcesRead => "resources/read",
        }
    }
}

/// One request, as far as a state is bound to it. `_meta`, `inputResponses` and `requestState` never count.
///
/// Arguments count by their canonical form (RFC 8785): the order of members, white space, and `1` or `1.0` make no
/// difference; every other difference does, also between two ways to write the same character (nothing is normalised)
/// and between integers that a double cannot tell apart. No arguments and an empty object are the same.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestDigest<'a> {
    pub(super) method: Method,
    pub(super) name: &'a str,
    pub(super) arguments: [u8; 32],
}

impl std::fmt::Debug for RequestDigest<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("RequestDigest").field(&self.told()).finish()
    }
}

impl<'a> RequestDigest<'a> {
    /// A call of a tool.
    #[must_use]
    pub fn tool(name: &'a str, arguments: Option<&Map<String, Value>>) -> Self {
        Self::new(Method::ToolsCall, name, arguments, &[])
    }

    /// A request for a prompt.
    #[must_use]
    pub fn prompt(name: &'a str, arguments: Option<&Map<String, Value>>) -> Self {
        Self::new(Method::PromptsGet, name, arguments, &[])
    }

    /// A request for a resource.
    #[must_use]
    pub fn resource(uri: &'a str) -> Self {
        Self::new(Method::ResourcesRead, uri, None, &[])
    }

    /// The method, and of tools and prompts the name. A URI may say too much.
    pub(crate) fn told(&self) -> String {
        match self.method {
            Method::ToolsCall | Method::PromptsGet => {
                // Whoever calls has written it.
                let name: String = self.name.chars().take(128).collect();
                format!("{} {name}", self.method.name())
            }
            Method::ResourcesRead => self.method.name().to_owned(),
        }
    }

    /// One whose arguments have been digested before.
    #[cfg(feature = "rmcp")]
    pub(crate) fn of_digest(method: Method, name: &'a str, arguments: [u8; 32]) -> Self {
        Self { method, name, arguments }
    }

    /// The digest of its arguments.
    #[cfg(feature = "rmcp")]
    pub(crate) fn arguments(&self) -> [u8; 32] {
        self.arguments
    }

    /// Any of them, without some of the arguments: those that may change between the question and the answer.
    #[must_use]
    pub fn new(method: Method, name: &'a str, arguments: Option<&Map<String, Value>>, leaving_out: &[&str]) -> Self {
        let arguments = match arguments {
            Some(arguments) => canonical::digest(arguments, leaving_out),
            None => canonical::digest(&Map::new(), &[]),
        };
        Self { method, name, arguments }
    }
}
