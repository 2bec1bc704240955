//! Where a store is, and what is said about it when it does not answer. Its URL may hold a password, so what is shown of
//! it is only what cannot be one.

use std::{sync::Arc, time::Duration};

use handfast::{
    clock::ManualClock,
    store::{OpenOptions, Store, StoreError, open},
};

use crate::output::Failure;

/// Which store, and how long it may take.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// The store: sqlite:FILE, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "HANDFAST_STORE", hide_env_values = true)]
    store: Option<String>,

    /// How long the store may take for one answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = humantime::parse_duration)]
    timeout: Duration,
}

impl Place {
    /// Opens a store that is there already.
    pub(super) async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        self.opened(OpenOptions { create: false, ..OpenOptions::default() }).await
    }

    /// What is made when the store is opened for the first time; `None` where all is there.
    pub(super) async fn missing(&self) -> Option<&'static str> {
        let told = self.open().await.err()?.0;
        let missing = [("there is no file", "no such file"), ("there is no store", "no table of handfast in it")];
        missing.into_iter().find(|(said, _)| told.contains(said)).map(|(_, what)| what)
    }

    /// Opens a store that is judged by this clock, and makes it where it is not there yet.
    pub(super) async fn open_with(&self, clock: &Arc<ManualClock>) -> Result<Arc<dyn Store>, Failure> {
        self.opened(OpenOptions { clock: Some(clock.clone()), ..OpenOptions::default() }).await
    }

    async fn opened(&self, options: OpenOptions) -> Result<Arc<dyn Store>, Failure> {
        if self.timeout.is_zero() || self.timeout > LONGEST {
            return Err(Failure("--timeout must be more than nothing, and at most 1h".to_owned()));
        }
        let Some(url) = self.store.as_ref().filter(|url| !url.is_empty()) else {
            return Err(Failure("no store: name one with --store URL, or in HANDFAST_STORE".to_owned()));
        };
        let opened = open(url, OpenOptions { timeout: self.timeout, ..options }).await;
        opened.map_err(|error| Failure(self.words(&error)))
    }

    /// What went wrong, where, and what to do about it.
    pub(super) fn words(&self, error: &StoreError) -> String {
        let told = match error {
            StoreError::Unavailable(source) => format!("the store did not answer: {}", causes(&**source)),
            other => other.to_string(),
        };
        let elapsed = format!("no answer within {}", humantime::format_duration(self.timeout));
        let told = told.replace("deadline has elapsed", &elapsed).replace(CANCELLED, &elapsed).replace(CREATING, "");
        let says = |any: &[&str]| any.iter().any(|said| told.contains(said));
        // A database that says why has answered.
        let silent = told.starts_with("the store did not answer") || told.starts_with("cannot use the database");
        let advice = if says(&["invalid peer certificate"]) {
            "; name the certificate of its issuer in SSL_CERT_FILE, or the host as the certificate has it"
        } else if says(&["server does not support TLS"]) {
            "; turn TLS on there, or say sslmode=disable in the URL"
        } else if says(&["password missing"]) {
            "; it belongs into the URL, and the URL into HANDFAST_STORE, where no list of processes shows it"
        } else if silent && !says(&["db error", "invalid configuration"]) {
            "; see that it runs and can be reached, or give it more --timeout"
        } else if told.starts_with("there is no") {
            "; a server makes its store when it starts: see that this is the one"
        } else {
            ""
        };
        match shown(self.store.as_deref().unwrap_or_default()).filter(|place| !told.contains(file(place))) {
            Some(place) => format!("{place}: {told}{advice}"),
            None => format!("{told}{advice}"),
        }
    }
}

/// What a database says when it was quicker to notice than we were.
const CANCELLED: &str = "db error: ERROR: canceling statement due to statement timeout";

/// What a pool of connections says before it says what happened.
const CREATING: &str = "Error occurred while creating a new object: ";

fn file(place: &str) -> &str {
    place.trim_start_matches("sqlite:").trim_start_matches("./")
}

/// An error with its causes, in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What may be shown of a URL: the file, or the host and the database. Nothing where that cannot be told from a password.
fn shown(url: &str) -> Option<String> {
    if url.starts_with("sqlite:") {
        return Some(url.to_owned());
    }
    let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"))?;
    let (place, _) = rest.split_once('?').unwrap_or((rest, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-%:[]/,".contains(&byte));
    match place.rsplit_once('@') {
        // An `@` after the `?` would mean that the `?` was part of a password.
        _ if rest.len() > place.len() && rest[place.len()..].contains('@') => None,
        Some((_, place)) if plain(place) => Some(format!("postgres://…@{place}")),
        // Without an `@`, what stands after a colon may be a password whose host was forgotten.
        None if plain(place) && !place.contains(':') => Some(format!("postgres://{place}")),
        _ => None,
    }
}

/// The longest that an answer is waited for: what both kinds of database take.
const LONGEST: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_no_password_is_shown() {
        for (url, expected) in [
            ("sqlite:/var/lib/handles.db", Some("sqlite:/var/lib/handles.db")),
            ("postgres://u:pw@db.example:5432/handles", Some("postgres://…@db.example:5432/handles")),
            ("postgresql://u:pw@[::1]/handles", Some("postgres://…@[::1]/handles")),
            ("postgres://u@db.example/handles?sslmode=disable", Some("postgres://…@db.example/handles")),
            ("postgres://db.example/handles?password=pw", Some("postgres://db.example/handles")),
            ("postgres://u:p@pw@db.example/handles", Some("postgres://…@db.example/handles")),
            ("postgres://u:p/pw@db.example/handles", Some("postgres://…@db.example/handles")),
            ("postgres://u:p?pw@db.example/handles", None),
            ("postgres://db.example/handles?password=a@pw", None),
            ("postgres://u:pw", None),
            ("postgres://u:p@pw w/db", None),
            ("mysql://u:pw@db.example/handles", None),
            ("u:pw", None),
            ("", None),
        ] {
            assert_eq!(shown(url).as_deref(), expected, "{url}");
        }
    }
}
