//! Where a credential comes from: the words of the profile, an environment variable, the output of a command, or an OAuth
//! client-credentials grant. What never leaves here: a credential in an error.

mod command;
mod grant;

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::identity::Who;

pub use grant::ClientCredentials;

/// Where a credential comes from. Exactly one of the four.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table with one of value, env, command and client_credentials")]
pub struct Source {
    /// The credential itself.
    #[serde(skip_serializing, deserialize_with = "secret")]
    value: Option<SecretString>,
    /// The environment variable that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<String>,
    /// A program with its arguments whose standard output it is. No shell reads it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    /// A token of a client of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_credentials: Option<ClientCredentials>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Source").field("kind", &self.kinds()).finish_non_exhaustive()
    }
}

/// Why there is no credential. Says what to change, and nothing that is secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// Not exactly one source.
    #[error("needs one of `value`, `env`, `command` and `client_credentials`; it has {0}")]
    Sources(usize),
    /// The variable is not there, or empty.
    #[error("takes it from ${0}, which is not set")]
    NotSet(String),
    /// The command brought nothing usable.
    #[error("the command `{program}` {reason}")]
    Command {
        /// The program, without its arguments.
        program: String,
        /// What went wrong.
        reason: String,
    },
    /// The grant brought no token.
    #[error("the token endpoint {endpoint}: {reason}")]
    Grant {
        /// The endpoint, without its query.
        endpoint: String,
        /// What went wrong.
        reason: String,
    },
    /// There is something, and it cannot be a credential.
    #[error("is empty, longer than {LONGEST} bytes, or has characters that no credential has")]
    Unusable,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    String::deserialize(deserializer).map(|text| Some(SecretString::from(text)))
}

/// The environment that sources read.
pub type Environment = BTreeMap<String, String>;

impl Source {
    /// The environment variables that it reads: a server under test must not inherit them.
    pub fn variables(&self) -> impl Iterator<Item = &String> {
        let grant = self.client_credentials.as_ref();
        self.env.iter().chain(grant.into_iter().flat_map(ClientCredentials::variables))
    }

    /// Whether it can work at all.
    ///
    /// # Errors
    /// [`CredentialError`] says what is missing.
    pub fn check(&self) -> Result<(), CredentialError> {
        match self.kinds() {
            1 => self.client_credentials.as_ref().map_or(Ok(()), ClientCredentials::check),
            other => Err(CredentialError::Sources(other)),
        }
    }

    fn kinds(&self) -> usize {
        let given =
            [self.value.is_some(), self.env.is_some(), !self.command.is_empty(), self.client_credentials.is_some()];
        given.into_iter().filter(|given| *given).count()
    }

    /// Fetches the credential.
    ///
    /// # Errors
    /// [`CredentialError`] says why there is none.
    pub async fn fetch(
        &self,
        environment: &Environment,
        ca_certificates: Option<&[u8]>,
    ) -> Result<SecretString, CredentialError> {
        self.check()?;
        let credential = match (&self.value, &self.env, self.command.split_first(), &self.client_credentials) {
            (Some(value), ..) => value.clone(),
            (_, Some(name), ..) => from_environment(environment, name)?,
            (_, _, Some((program, arguments)), _) => command::output_of(program, arguments).await?,
            (.., Some(grant)) => grant.token(environment, ca_certificates).await?,
            _ => return Err(CredentialError::Sources(0)),
        };
        let text = credential.expose_secret();
        let is_usable = !text.trim().is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
        if is_usable { Ok(credential) } else { Err(CredentialError::Unusable) }
    }
}

impl Source {
    /// Tokens from the same grant for other audiences: what an issuer that gives them to anybody gives. Empty where this is
    /// no grant; an audience for which the issuer gives none is left out.
    pub async fn nearly(
        &self,
        of_server: &str,
        environment: &Environment,
        ca_certificates: Option<&[u8]>,
    ) -> Vec<(Who, SecretString)> {
        let mut nearly = Vec::new();
        let Some(grant) = &self.client_credentials else { return nearly };
        for who in Who::NEARLY {
            let audience = who.audience(of_server);
            if audience.is_none() && who != Who::NoAudience {
                continue;
            }
            if let Ok(token) = grant.for_audience(audience).token(environment, ca_certificates).await {
                nearly.push((who, token));
            }
        }
        nearly
    }

    /// The server that a grant asks tokens for, where it names one.
    pub fn resource(&self) -> Option<&str> {
        self.client_credentials.as_ref()?.resource()
    }
}

fn from_environment(environment: &Environment, name: &str) -> Result<SecretString, CredentialError> {
    let found = environment.get(name).filter(|value| !value.is_empty());
    found.map(|value| SecretString::from(value.clone())).ok_or_else(|| CredentialError::NotSet(name.to_owned()))
}

/// No token is longer.
const LONGEST: usize = 16 * 1024;
