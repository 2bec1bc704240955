//! Twins, ready to be probed.

use handfast_probe::target::Address;
use handfast_twins::Answers;
use url::Url;

use crate::{
    output::Failure,
    twin::{self, Transport},
};

/// A twin that can be probed.
pub(super) enum Served {
    Http(handfast_twins::Served, Url),
    Stdio(Address),
}

impl Served {
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Http(_, url) => Address::Http(url.clone()),
            Self::Stdio(address) => address.clone(),
        }
    }

    pub(super) async fn stop(self) {
        if let Self::Http(served, _) = self {
            served.stop().await;
        }
    }
}

/// Starts a twin; over stdio the probe does that itself.
pub(super) async fn started(transport: Transport, name: &str) -> Result<Served, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure(format!("{name}: {error}"));
    Ok(match transport {
        Transport::Http => {
            let served = handfast_twins::serve_http(twin::named(name)?, 0, Answers::Json).await;
            let served = served.map_err(|error| fail(&error))?;
            let url = Url::parse(&served.url()).map_err(|error| fail(&error))?;
            Served::Http(served, url)
        }
        Transport::Stdio => {
            let program = std::env::current_exe().map_err(|error| fail(&error))?.display().to_string();
            let arguments = ["twin", name, "--transport", "stdio"].map(str::to_owned).to_vec();
            Served::Stdio(Address::Stdio { program, arguments })
        }
    })
}
