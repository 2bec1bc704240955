//! The profile: what an operator knows and the probe would otherwise have to find out. Written by `handfast discover
//! --write`, edited by a person, read with `--profile`. Unknown keys are errors, with their line.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::{
    credential::{CredentialError, Source},
    discovery::{
        Entry, Kind, Map,
        emitted::{Given, Spot},
    },
    identity::Who,
    surface::Surface,
};

/// A profile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Version of this format.
    #[serde(default = "current_version")]
    pub version: u32,
    /// Who calls.
    #[serde(skip_serializing_if = "Identities::is_empty")]
    pub identities: Identities,
    /// Limits on tools.
    #[serde(skip_serializing_if = "Tools::is_empty")]
    pub tools: Tools,
    /// Which tool mints what, and who consumes it. Given any, nothing else is looked for.
    #[serde(rename = "handle", skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<HandleRule>,
    /// Fixed arguments, by tool and argument.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, BTreeMap<String, Value>>,
    /// Fixed content of answers to a tool's questions, by tool and field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, BTreeMap<String, Value>>,
}

/// How identities travel, and where their credentials come from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identities {
    /// The HTTP header that carries a credential, where it is not `Authorization: Bearer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The `_meta` key that carries a principal over stdio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_key: Option<String>,
    /// The environment variable that holds A's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_env: Option<String>,
    /// The environment variable that holds B's credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b_env: Option<String>,
    /// Where A's credential comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<Source>,
    /// Where B's credential comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<Source>,
    /// A token of A's that was issued later.
    #[serde(rename = "a-new-token", skip_serializing_if = "Option::is_none")]
    pub a_new_token: Option<Source>,
    /// A token of A's for another OAuth client.
    #[serde(rename = "same-user-other-client", skip_serializing_if = "Option::is_none")]
    pub same_user_other_client: Option<Source>,
    /// A token of a user of another tenant.
    #[serde(rename = "other-tenant", skip_serializing_if = "Option::is_none")]
    pub other_tenant: Option<Source>,
    /// A token of A's for another server.
    #[serde(rename = "wrong-audience", skip_serializing_if = "Option::is_none")]
    pub wrong_audience: Option<Source>,
    /// A token of A's whose time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired: Option<Source>,
    /// A token of A's for the OAuth client itself, as an ID token is.
    #[serde(rename = "client-id-audience", skip_serializing_if = "Option::is_none")]
    pub client_id_audience: Option<Source>,
    /// A guest's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anonymous: Option<Source>,
}

impl Identities {
    fn is_empty(&self) -> bool {
        let named = [&self.header, &self.meta_key, &self.a_env, &self.b_env];
        named.iter().all(|named| named.is_none()) && self.sources().next().is_none()
    }

    /// Every source, with its name in the profile and whose credential it is.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, Who, &Source)> {
        let sources = [
            ("a", Who::A, &self.a),
            ("b", Who::B, &self.b),
            ("a-new-token", Who::NewToken, &self.a_new_token),
            ("same-user-other-client", Who::OtherClient, &self.same_user_other_client),
            ("other-tenant", Who::OtherTenant, &self.other_tenant),
            ("wrong-audience", Who::WrongAudience, &self.wrong_audience),
            ("expired", Who::Expired, &self.expired),
            ("client-id-audience", Who::ClientIdAudience, &self.client_id_audience),
            ("anonymous", Who::Anonymous, &self.anonymous),
        ];
        sources.into_iter().filter_map(|(name, who, source)| Some((name, who, source.as_ref()?)))
    }

    /// The environment variables that hold secrets: a server under test must not inherit them.
    pub fn variables(&self) -> Vec<String> {
        let sources = self.sources().flat_map(|(_, _, source)| source.variables());
        self.a_env.iter().chain(&self.b_env).chain(sources).cloned().collect()
    }
}

/// Limits on tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Never called, whatever they declare.
    pub deny: Vec<String>,
}

impl Tools {
    fn is_empty(&self) -> bool {
        self.deny.is_empty()
    }
}

/// One kind of handle.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleRule {
    /// The tool that mints it.
    pub mint: String,
    /// JSON Pointer into the result, for example `/structuredContent/basket_id` or `/content/0/text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// JSON Pointer into the JSON text that stands at `pointer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// A regular expression for the text at `pointer`, or for all text of the result; its first group is the handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Entry points that accept it: `tools/call NAME#ARGUMENT`, `prompts/get NAME#ARGUMENT`, `resources/read TEMPLATE#VARIABLE`.
    pub consume: Vec<String>,
}

/// Why a profile cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, or with keys or types that a profile does not have. Names the line.
    #[error("{0}")]
    Syntax(String),
    /// A version that this program does not know.
    #[error("version {0} is not known to this program, which reads version {VERSION}")]
    Version(u32),
    /// An identity that cannot work.
    #[error("identity {name}: {reason}")]
    Identity {
        /// Its name.
        name: &'static str,
        /// What is wrong.
        reason: CredentialError,
    },
    /// A handle rule that cannot work.
    #[error("handle of `{mint}`: {reason}")]
    Handle {
        /// The minting tool.
        mint: String,
        /// What is wrong.
        reason: String,
    },
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`ProfileError`] says where and what.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().map(|span| &text[..text.floor_char_boundary(span.start)]);
            let place = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1)).unwrap_or_default();
            // What stands in the wrong place may be a credential: the key is named, and not the value.
            let message = match error.message().split_once(", expected ") {
                Some((found, wanted)) if found.starts_with("invalid type") => {
                    let line = before.and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
                    let key = line.split_once('=').map(|(key, _)| key.trim()).unwrap_or_default();
                    format!("`{key}` must be {wanted}")
                }
                _ => error.message().to_owned(),
            };
            ProfileError::Syntax(format!("{place}{message}"))
        })?;
        if profile.version != VERSION {
            return Err(ProfileError::Version(profile.version));
        }
        for (name, _, source) in profile.identities.sources() {
            source.check().map_err(|reason| ProfileError::Identity { name, reason })?;
        }
        profile.map()?;
        Ok(profile)
    }

    /// The handle rules as a map, if there are any.
    ///
    /// # Errors
    /// [`ProfileError::Handle`] for a rule that cannot work.
    pub fn map(&self) -> Result<Option<Map>, ProfileError> {
        let kinds = self.handles.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        Ok((!kinds.is_empty()).then(|| Map { kinds, ..Map::default() }))
    }

    /// A tool that the profile speaks of and the server does not list: a slip of the pen must not let a denied tool be called.
    pub fn unlisted_tool(&self, surface: &Surface) -> Option<&str> {
        // Prompts and resources ask as well.
        let is_other =
            |name: &&String| name.contains("://") || surface.prompts.iter().any(|prompt| prompt.name == **name);
        let answers = self.answers.keys().filter(|name| !is_other(name));
        let mints = self.handles.iter().map(|handle| &handle.mint);
        let named = self.tools.deny.iter().chain(self.arguments.keys()).chain(answers).chain(mints);
        named.map(String::as_str).find(|name| surface.tool(name).is_none())
    }

    /// Whether the operator forbids a tool.
    pub fn denies(&self, tool: &str) -> bool {
        self.tools.deny.iter().any(|denied| denied == tool)
    }

    /// The fixed arguments of a tool.
    pub fn fixed(&self, tool: &str) -> BTreeMap<String, Value> {
        self.arguments.get(tool).cloned().unwrap_or_default()
    }

    /// The fixed answers to a tool's questions.
    pub fn answers(&self, tool: &str) -> BTreeMap<String, Value> {
        self.answers.get(tool).cloned().unwrap_or_default()
    }

    /// A profile that says what was found.
    pub fn of(map: &Map) -> Self {
        // A name that cannot be written cannot be read either.
        let writable = |rule: &HandleRule| kind(rule).is_ok() && !rule.mint.chars().any(char::is_control);
        let handles = map.kinds.iter().map(rule).filter(writable).collect();
        Self { version: VERSION, handles, ..Self::default() }
    }

    /// The profile as text, with a heading and examples for the person who edits it. What was found is cleaned of what must
    /// not be written.
    pub fn to_text(&self, clean: impl Fn(&str) -> String) -> String {
        let body = toml::to_string_pretty(self).unwrap_or_default();
        format!("{HEADING}\n{}{EXAMPLES}", clean(&body))
    }
}

fn kind(rule: &HandleRule) -> Result<Kind, ProfileError> {
    let fail = |reason: String| ProfileError::Handle { mint: rule.mint.clone(), reason };
    if rule.pointer.is_none() && rule.pattern.is_none() {
        return Err(fail("needs `pointer` or `pattern`".to_owned()));
    }
    for pointer in rule.pointer.iter().chain(&rule.json) {
        if !pointer.starts_with('/') {
            return Err(fail(format!("`{pointer}` is not a JSON Pointer: it must start with `/`")));
        }
    }
    let pattern = rule.pattern.as_deref().map(Regex::new).transpose().map_err(|error| fail(error.to_string()))?;
    if pattern.as_ref().is_some_and(|pattern| pattern.captures_len() < 2) {
        return Err(fail("`pattern` has no group: put parentheses around the handle".to_owned()));
    }
    let entries = rule
        .consume
        .iter()
        .map(|text| Entry::parse(text).ok_or_else(|| fail(format!("`{text}` is not METHOD NAME#ARGUMENT"))))
        .collect::<Result<Vec<_>, _>>()?;
    let given = Given {
        pointer: rule.pointer.clone(),
        json: rule.json.clone(),
        pattern: pattern.map(|p| p.as_str().to_owned()),
    };
    Ok(Kind { mint: rule.mint.clone(), spot: Spot::Given(given), entries })
}

fn rule(kind: &Kind) -> HandleRule {
    let given = kind.spot.as_given();
    HandleRule {
        mint: kind.mint.clone(),
        pointer: given.pointer,
        json: given.json,
        pattern: given.pattern,
        consume: kind.entries.iter().map(ToString::to_string).filter(|text| Entry::parse(text).is_some()).collect(),
    }
}

fn current_version() -> u32 {
    VERSION
}

const VERSION: u32 = 1;
const HEADING: &str = "\
# What handfast found on this server. Edit it, then pass it with `--profile`.
# Every [[handle]] names the tool that mints a handle, where in its result the handle stands, and who accepts it.
";
const EXAMPLES: &str = "
# [tools]
# deny = [\"send_report\"]              # never called
#
# [arguments.open_basket]              # fixed arguments of a tool
# currency = \"EUR\"
#
# [answers.checkout]                   # fixed answers to a tool's questions
# confirm = true
#
# [identities]
# a_env = \"TOKEN_OF_ALICE\"             # where the credentials come from
# b_env = \"TOKEN_OF_BOB\"
# header = \"X-Api-Key\"                 # instead of `Authorization: Bearer`
#
# [identities.expired]                 # a token of A's whose time is over; also a-new-token, same-user-other-client,
# env = \"EXPIRED_TOKEN_OF_ALICE\"       # other-tenant, wrong-audience, client-id-audience, anonymous, a, b
#                                      # or: value = \"...\", or: command = [\"./token\", \"alice\"]
# [identities.other-tenant.client_credentials]
# token_url = \"https://issuer.example.com/token\"
# client_id = \"probe\"
# client_secret_env = \"PROBE_SECRET\"   # or: client_secret_command = [\"./secret\"]
# scope = \"mcp\"
# resource = \"https://mcp.example.com/mcp\"
# parameters = { audience = \"mcp\" }    # whatever else the issuer wants in the form
";
