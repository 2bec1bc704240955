//! What handles may be and do, by object type. Validated when it is loaded: a bad policy does not start.

use std::{collections::BTreeMap, time::Duration};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;
use thiserror::Error;

use crate::{
    caller::{Scope, ScopeError, ScopeSet},
    handle::Need,
    record::{ObjectType, PolicyVersion},
    text::{self, TextError, identifier},
};

identifier! {
    /// A word that stands before every handle of a type, so that people and scanners recognise it: `bsk`.
    Prefix, "a prefix", text::name, 16
}
identifier! {
    /// The name of a tool, or of an argument of one.
    ToolName, "a tool or argument name", text::scope, 128
}

/// Everything that is allowed, by object type. What is not named is not allowed.
#[derive(Debug, Clone)]
pub struct Policy {
    version: PolicyVersion,
    rules: BTreeMap<ObjectType, Rules>,
}

/// The rules for handles of one object type.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rules {
    /// The object type.
    pub object: ObjectType,
    /// How long a handle lives in any case.
    pub lifetime: Duration,
    /// How long it lives unused.
    pub idle: Option<Duration>,
    /// The scopes that a handle can have.
    pub scopes: ScopeSet,
    /// How many of them at once.
    pub most_scopes: usize,
    /// Which parts of the caller it is bound to.
    pub bound: Bound,
    /// Whether anonymous callers may have one: whoever holds it can use it then.
    pub bearer: bool,
    /// What stands before it, with `_` between.
    pub prefix: Option<Prefix>,
    /// The tool that makes one, named in refusals so that a model can recover.
    pub created_by: ToolName,
    /// The argument by which tools take it.
    pub argument: ToolName,
}

/// Which parts of the caller a handle is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Issuer and subject.
    pub principal: bool,
    /// Tenant.
    pub tenant: bool,
    /// OAuth client.
    pub client: bool,
}

/// The longest that a handle may live.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

/// The longest that a bearer handle may live. "For unauthenticated servers ... give it a bounded lifetime."
const LONGEST_BEARER: Duration = Duration::from_secs(24 * 3600);

/// What the result of a creating tool has beside the handle.
pub(crate) const EXPIRES: &str = "expires_at";

/// The greatest policy that is read, in bytes.
const LONGEST_POLICY: usize = 1 << 20;

/// Why a policy is not one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// It is larger than any policy should be.
    #[error("the policy has {0} bytes; at most {LONGEST_POLICY} are read")]
    TooLarge(usize),
    /// It is not written as a policy is written. Says where.
    #[error("the policy cannot be read: {}", .0.to_string().trim_end().replace('\n', " "))]
    Syntax(#[from] toml::de::Error),
    /// Its version is no version.
    #[error("version: {0}")]
    Version(TextError),
    /// It allows nothing.
    #[error("the policy names no object; write at least one table [objects.NAME]")]
    Nothing,
    /// The rules of one object type are wrong.
    #[error("objects.{object}: {problem}")]
    Rules {
        /// The object type, as written.
        object: String,
        /// What is wrong.
        problem: RulesError,
    },
    /// The signature is not that of this key over this text, or is no signature.
    #[error("the policy's signature does not verify")]
    Signature,
}

/// What is wrong with the rules of one object type.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// A name or prefix is none.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The scopes are no set.
    #[error("scopes: {0}")]
    Scopes(#[from] ScopeError),
    /// A duration is none.
    #[error("{field} = {text:?} is no duration; write 90s, 15m, 24h or 7d")]
    Duration {
        /// Which one.
        field: &'static str,
        /// As written.
        text: String,
    },
    /// A duration is out of its bounds.
    #[error("{field} must be between {} and {}", humantime::format_duration(*.least), humantime::format_duration(*.most))]
    Bounds {
        /// Which one.
        field: &'static str,
        /// The least that it can be.
        least: Duration,
        /// The most that it can be.
        most: Duration,
    },
    /// No scope could be granted, or more than there are.
    #[error("most_scopes must be between 1 and the number of scopes, {0}")]
    MostScopes(usize),
    /// The argument has the name of something else in the same result.
    #[error("argument must not be \"{EXPIRES}\": the result of the tool that makes a handle has that besides")]
    Argument,
    /// Handles would be bound to nobody.
    #[error(
        "bound must contain \"principal\" or \"tenant\": a client alone makes all users of one OAuth client one person"
    )]
    BoundToNobody,
}

/// A need that the policy does not know.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the policy has no object type `{object}` with a scope `{scope}`")]
pub struct NoSuchNeed {
    object: String,
    scope: String,
}

impl Policy {
    /// Reads a policy.
    ///
    /// ```
    /// let policy = handfast::Policy::from_toml(r#"
    ///     version = "2026-11"
    ///
    ///     [objects.basket]
    ///     lifetime = "7d"
    ///     idle = "24h"
    ///     scopes = ["basket:read", "basket:write"]
    ///     created_by = "create_basket"
    ///     prefix = "bsk"
    /// "#)?;
    /// let basket = policy.rules_for("basket").expect("the rules above");
    /// assert_eq!(
    ///     basket.retention_sentence("basket"),
    ///     "Baskets expire after 24 hours of inactivity, and after 7 days in any case."
    /// );
    /// # Ok::<(), handfast::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        if text.len() > LONGEST_POLICY {
            return Err(PolicyError::TooLarge(text.len()));
        }
        let written: Written = toml::from_str(text)?;
        let version = PolicyVersion::new(written.version).map_err(PolicyError::Version)?;
        let mut rules = BTreeMap::new();
        for (name, written) in written.objects {
            let parsed = written.parse(&name).map_err(|problem| PolicyError::Rules { object: name, problem })?;
            rules.insert(parsed.object.clone(), parsed);
        }
        if rules.is_empty() { Err(PolicyError::Nothing) } else { Ok(Self { version, rules }) }
    }

    /// Reads a policy that is signed, and refuses it unless the signature verifies: Ed25519 over the text as it is,
    /// byte for byte.
    ///
    /// # Errors
    /// The signature does not verify (nothing else is looked at then), or as for [`Policy::from_toml`].
    pub fn from_signed_toml(text: &str, signature: &[u8], public_key: &[u8]) -> Result<Self, PolicyError> {
        if text.len() > LONGEST_POLICY {
            return Err(PolicyError::TooLarge(text.len()));
        }
        UnparsedPublicKey::new(&ED25519, public_key)
            .verify(text.as_bytes(), signature)
            .map_err(|_| PolicyError::Signature)?;
        Self::from_toml(text)
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &PolicyVersion {
        &self.version
    }

    /// The rules for an object type; `None` where the policy does not allow it.
    #[must_use]
    pub fn rules_for(&self, object: &str) -> Option<&Rules> {
        self.rules.iter().find(|(name, _)| name.as_str() == object).map(|(_, rules)| rules)
    }

    pub(crate) fn rules(&self, object: &ObjectType) -> Option<&Rules> {
        self.rules.get(object)
    }

    /// What a tool needs of a handle, if this policy knows the object type and the scope: best made once, at the start.
    ///
    /// # Errors
    /// It does not; no handle could ever meet the need.
    pub fn need(&self, object: &str, scope: &str) -> Result<Need, NoSuchNeed> {
        let none = || NoSuchNeed { object: object.to_owned(), scope: scope.to_owned() };
        let rules = self.rules_for(object).ok_or_else(none)?;
        let scope = rules.scopes.iter().find(|known| known.as_str() == scope).ok_or_else(none)?;
        Ok(Need::new(rules.object.clone(), scope.clone()))
    }

    /// The rules of every object type.
    pub fn all_rules(&self) -> impl Iterator<Item = &Rules> {
        self.rules.values()
    }
}

impl Rules {
    /// Whether a handle of this type can have this scope.
    #[must_use]
    pub fn allows(&self, scope: &Scope) -> bool {
        self.scopes.contains(scope)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: String,
    #[serde(default)]
    objects: BTreeMap<String, WrittenRules>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRules {
    lifetime: String,
    idle: Option<String>,
    scopes: Vec<String>,
    most_scopes: Option<usize>,
    bound: Option<Vec<Part>>,
    #[serde(default)]
    bearer: bool,
    prefix: Option<String>,
    created_by: String,
    argument: Option<String>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Part {
    Principal,
    Tenant,
    Client,
}

impl WrittenRules {
    fn parse(self, name: &str) -> Result<Rules, RulesError> {
        let most_lifetime = if self.bearer { LONGEST_BEARER } else { LONGEST };
        let lifetime = duration("lifetime", &self.lifetime, most_lifetime)?;
        let idle = self.idle.map(|text| duration("idle", &text, lifetime)).transpose()?;
        let scopes = ScopeSet::new(self.scopes)?;
        let all = scopes.iter().len();
        let most_scopes = self.most_scopes.unwrap_or(all);
        if most_scopes == 0 || most_scopes > all {
            return Err(RulesError::MostScopes(all));
        }
        let binds = |part: &Part| self.bound.as_ref().is_none_or(|bound| bound.contains(part));
        let bound =
            Bound { principal: binds(&Part::Principal), tenant: binds(&Part::Tenant), client: binds(&Part::Client) };
        if !bound.principal && !bound.tenant {
            return Err(RulesError::BoundToNobody);
        }
        let argument = ToolName::new(self.argument.unwrap_or_else(|| format!("{name}_id")))?;
        if argument.as_str() == EXPIRES {
            return Err(RulesError::Argument);
        }
        Ok(Rules {
            object: ObjectType::new(name)?,
            lifetime,
            idle,
            scopes,
            most_scopes,
            bound,
            bearer: self.bearer,
            prefix: self.prefix.map(Prefix::new).transpose()?,
            created_by: ToolName::new(self.created_by)?,
            argument,
        })
    }
}

fn duration(field: &'static str, text: &str, most: Duration) -> Result<Duration, RulesError> {
    let least = Duration::from_secs(1);
    let parsed = humantime::parse_duration(text).map_err(|_| RulesError::Duration { field, text: text.to_owned() })?;
    if parsed < least || parsed > most { Err(RulesError::Bounds { field, least, most }) } else { Ok(parsed) }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    const GOOD: &str = r#"
version = "1"

[objects.basket]
lifetime = "7d"
idle = "24h"
scopes = ["read", "write"]
created_by = "create_basket"
"#;

    fn why(text: &str) -> String {
        Policy::from_toml(text).expect_err("refused").to_string()
    }

    #[test]
    fn everything_is_bound_by_default() {
        let policy = Policy::from_toml(GOOD).expect("a policy");
        let rules = policy.rules_for("basket").expect("rules");

        assert_eq!(rules.bound, Bound { principal: true, tenant: true, client: true });
        assert!(!rules.bearer);
        assert_eq!(rules.most_scopes, 2);
        assert_eq!(rules.argument.as_str(), "basket_id");
        assert!(policy.rules_for("order").is_none());
        assert!(policy.need("basket", "read").is_ok());
        for (object, scope) in [("basket", "sell"), ("order", "read"), ("", "")] {
            assert!(policy.need(object, scope).is_err(), "{object} {scope}");
        }
    }

    #[test]
    fn a_bad_policy_is_told_by_its_place() {
        let changed = |from: &str, to: &str| why(&GOOD.replace(from, to));

        assert_eq!(
            changed("\"7d\"", "\"soon\""),
            "objects.basket: lifetime = \"soon\" is no duration; write 90s, 15m, 24h or 7d"
        );
        assert!(changed("\"7d\"", "\"0s\"").contains("lifetime must be between 1s and"));
        assert!(changed("\"7d\"", "\"4000d\"").contains("lifetime must be between"));
        assert!(changed("\"24h\"", "\"8d\"").contains("idle must be between 1s and 7days"));
        assert!(changed("[\"read\", \"write\"]", "[]").contains("at least one scope"));
        assert!(changed("[\"read\", \"write\"]", "[\"read\", \"read\"]").contains("`read` is there twice"));
        assert!(changed("\"24h\"", "\"24h\"\nmost_scopes = 3").contains("most_scopes"));
        assert!(changed("\"24h\"", "\"24h\"\nmost_scopes = 0").contains("most_scopes"));
        assert!(changed("\"24h\"", "\"24h\"\nbound = [\"client\"]").contains("one OAuth client one person"));
        assert!(changed("\"24h\"", "\"24h\"\nbound = []").contains("one OAuth client one person"));
        assert!(changed("\"24h\"", "\"24h\"\nbind = []").contains("unknown field `bind`"));
        assert!(changed("\"24h\"", "\"24h\"\nbind = []").contains("line 7"));
        assert!(changed("\"24h\"", "\"24h\"\nprefix = \"a b\"").contains("a prefix must be"));
        assert!(changed("\"24h\"", "\"24h\"\nargument = \"expires_at\"").contains("argument must not be"));
        assert!(changed("objects.basket", "objects.Basket").contains("objects.Basket: an object type must be"));
        assert!(changed("version = \"1\"", "version = \"\"").contains("a policy version must not be empty"));
        assert!(why("version = \"1\"").contains("names no object"));
        assert!(why(&" ".repeat(LONGEST_POLICY + 1)).contains("at most"));
    }

    #[test]
    fn no_error_has_more_than_one_line() {
        assert!(!why("version = \n").contains('\n'));
    }

    #[test]
    fn bearer_handles_have_a_bounded_life() {
        let bearer = GOOD.replace("created_by", "bearer = true\ncreated_by");

        assert!(why(&bearer).contains("lifetime must be between 1s and 1day"));
        assert!(
            Policy::from_toml(&bearer.replace("7d", "24h"))
                .expect("a policy")
                .rules_for("basket")
                .expect("rules")
                .bearer
        );
    }

    #[test]
    fn a_signed_policy_is_refused_unless_the_signature_verifies() {
        let pair = Ed25519KeyPair::generate().expect("a key");
        let other = Ed25519KeyPair::generate().expect("a key");
        let signature = pair.sign(GOOD.as_bytes());
        let public = pair.public_key().as_ref();

        assert!(Policy::from_signed_toml(GOOD, signature.as_ref(), public).is_ok());
        let refused = |text: &str, signature: &[u8], key: &[u8]| {
            matches!(Policy::from_signed_toml(text, signature, key), Err(PolicyError::Signature))
        };
        assert!(refused(&GOOD.replace("7d", "8d"), signature.as_ref(), public), "another text");
        assert!(refused(&format!("{GOOD}\n"), signature.as_ref(), public), "one line more");
        assert!(refused(GOOD, signature.as_ref(), other.public_key().as_ref()), "another key");
        assert!(refused(GOOD, &signature.as_ref()[..63], public), "a signature cut short");
        assert!(refused(GOOD, &[], public), "no signature");
        assert!(refused(GOOD, signature.as_ref(), &[]), "no key");
    }
}
