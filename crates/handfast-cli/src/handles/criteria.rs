//! Which handles: what a person types, as the selector of the library. No value is repeated in an error: it may be a
//! subject, or a handle that was put where its digest belongs.

use std::{fmt::Display, path::PathBuf, str::FromStr, sync::Arc};

use handfast::{
    Digest, Issuer, Keys, ObjectRef, ObjectType, Principal,
    clock::Timestamp,
    store::{Selector, Store},
};

use super::place::Place;
use crate::{input, output::Failure};

/// Which handles: those that meet every criterion given.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which handles: those that meet every criterion given")]
pub(super) struct Criteria {
    /// Of this tenant
    #[arg(long)]
    tenant: Option<String>,

    /// Made for this OAuth client
    #[arg(long)]
    client: Option<String>,

    /// To objects of this type, or to one of them
    #[arg(long, value_name = "TYPE[/REF]")]
    object: Option<String>,

    /// Made under this version of the policy
    #[arg(long, value_name = "VERSION")]
    policy_version: Option<String>,

    /// Made before this time, in RFC 3339: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    minted_before: Option<String>,

    /// The one of this digest, as `list` and audit events show it
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,

    /// Of this user, as the issuer knows them
    #[arg(long, num_args = 2, value_names = ["ISSUER", "SUBJECT"], requires = "keys")]
    subject: Option<Vec<String>>,

    /// The keys under which the server keeps its users, one on a line as `handfast keys new` prints them
    #[arg(long, value_name = "FILE", requires = "subject")]
    keys: Option<PathBuf>,
}

impl Criteria {
    /// The criteria as a selector.
    pub(super) fn selector(&self) -> Result<Selector, Failure> {
        let mut which = match (&self.subject, &self.keys) {
            (Some(subject), Some(keys)) => of_subject(subject, keys)?,
            _ => Selector::everything(),
        };
        if let Some(digest) = &self.digest {
            which = which.and_handle(Digest::from_hex(digest).ok_or_else(|| {
                let what = "--digest takes the 64 hexadecimal digits that `handfast handles list` shows";
                Failure(format!("{what}; the text of a handle goes to `revoke --handle-stdin`"))
            })?);
        }
        if let Some(tenant) = parsed("--tenant", self.tenant.as_deref())? {
            which = which.and_tenant(tenant);
        }
        if let Some(client) = parsed("--client", self.client.as_deref())? {
            which = which.and_client(client);
        }
        if let Some(object) = &self.object {
            let (kind, reference) = match object.split_once('/') {
                Some((kind, reference)) => (kind, Some(reference)),
                None => (object.as_str(), None),
            };
            let kind: Option<ObjectType> = parsed("--object", Some(kind))?;
            let reference: Option<ObjectRef> = parsed("--object", reference)?;
            which = kind.into_iter().fold(which, |which, kind| which.and_object(kind, reference.clone()));
        }
        if let Some(policy) = parsed("--policy-version", self.policy_version.as_deref())? {
            which = which.and_policy(policy);
        }
        if let Some(time) = &self.minted_before {
            let time = Timestamp::from_str(time).map_err(|_| {
                Failure("--minted-before takes a time as RFC 3339 writes it: 2026-01-31T12:00:00Z".to_owned())
            })?;
            which = which.and_minted_before(time);
        }
        Ok(which)
    }
}

/// Why nothing was found of a user, where it is the keys: of those that made what is in the store none is in the file.
pub(super) async fn other_keys(place: &Place, store: &Arc<dyn Store>, which: &Selector) -> Result<(), Failure> {
    let Some(wanted) = &which.subjects else { return Ok(()) };
    let (mut after, mut others) = (None, false);
    for _ in 0..PAGES {
        let page = store.list(&Selector::everything(), after, PAGE).await;
        let records = page.map_err(|error| Failure(place.words(&error)))?.records;
        let Some(last) = records.last() else { break };
        after = Some(last.digest);
        for made_by in records.iter().filter_map(|record| record.partition.subject) {
            if wanted.iter().any(|subject| subject.key == made_by.key) {
                return Ok(());
            }
            others = true;
        }
    }
    if !others {
        return Ok(());
    }
    Err(Failure(
        "none of the keys in --keys has made what is in this store: is it the file that the server uses?".into(),
    ))
}

/// How much of a store is looked at for that.
const PAGE: u32 = 1000;
const PAGES: u32 = 100;

/// What belongs to a user, under every key of the file.
fn of_subject(subject: &[String], path: &PathBuf) -> Result<Selector, Failure> {
    let [issuer, subject] = subject else {
        return Err(Failure("--subject takes two values: ISSUER and SUBJECT".to_owned()));
    };
    let wrong = |error: &dyn Display| Failure(format!("--subject: {error}"));
    let issuer = Issuer::new(issuer.as_str()).map_err(|error| wrong(&error))?;
    let principal = Principal::new(issuer, subject).map_err(|error| wrong(&error))?;
    input::regular(path, "file of keys")?;
    let keys = Keys::from_file(path).map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Failure(format!("--keys {}: {error}{cause}", path.display()))
    })?;
    Ok(Selector::subject(&principal, &keys))
}

/// A value of an option as what it should be.
fn parsed<T: FromStr<Err: Display>>(option: &str, text: Option<&str>) -> Result<Option<T>, Failure> {
    text.map(str::parse).transpose().map_err(|error| Failure(format!("{option}: {error}")))
}
