//! What a report may show of an exchange: who sent what, what came back, shortened, without credentials.

use serde::Serialize;
use serde_json::Value;

/// One exchange of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What the exchange was for: `mint`, `owner-use`, `forged-handle`, `subject`, ...
    pub step: String,
    /// Who sent it: `A`, `B`, `nobody`, `an impostor`.
    pub who: &'static str,
    /// Method and name: `tools/call read_basket`.
    pub call: String,
    /// The arguments, shortened.
    pub arguments: Value,
    /// What the answer means.
    pub disposition: &'static str,
    /// The answer in the server's words, shortened.
    pub answer: String,
    /// The HTTP status, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}
