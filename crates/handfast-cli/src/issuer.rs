//! `handfast issuer`.

use std::{process::ExitCode, time::Duration};

use clap::ValueEnum;
use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Map, Value, json};

use crate::output::{self, Failure};

/// Arguments of `handfast issuer`.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The canonical URI of the server that the tokens are for
    #[arg(long, value_name = "URI")]
    audience: String,

    /// The port on 127.0.0.1; 0 takes any that is free
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// The two users
    #[arg(long, num_args = 2, value_names = ["A", "B"], default_values = ["alice", "bob"])]
    users: Vec<String>,

    /// The OAuth client that the tokens are issued to
    #[arg(long, value_name = "ID", default_value = "demo-client")]
    client: String,

    /// What the tokens allow, with spaces between
    #[arg(long, value_name = "SCOPES")]
    scope: Option<String>,

    /// How long the tokens live
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    lifetime: Duration,

    /// How it says what it has
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each address and token
    Text,
    /// One JSON object
    Json,
}

/// Runs the command.
pub(crate) async fn run(args: Args) -> Result<ExitCode, Failure> {
    let Ok(lifetime) = i64::try_from(args.lifetime.as_secs()) else {
        return Err(Failure("--lifetime is longer than time".into()));
    };
    let issuer = Issuer::start(args.port).await.map_err(|error| {
        Failure(format!("cannot listen on 127.0.0.1:{}: {error}; --port 0 takes any that is free", args.port))
    })?;
    let tokens: Vec<(&str, String)> =
        wishes(&args, lifetime).into_iter().map(|(name, wish)| (name, issuer.token(&wish))).collect();
    let at = |path: &str| format!("{}{path}", issuer.url());
    let places = [
        ("issuer", issuer.url().to_owned()),
        ("jwks", issuer.jwks_url()),
        ("token-endpoint", at("/token")),
        ("introspection", at("/introspect")),
        ("client-secret", issuer.client_secret().to_owned()),
    ];
    match args.format {
        Format::Text => {
            let tokens = tokens.iter().map(|(name, token)| (*name, token.clone()));
            let lines: String =
                places.into_iter().chain(tokens).map(|(name, text)| format!("{name}: {text}\n")).collect();
            output::print(&lines)?;
        }
        Format::Json => {
            let mut told = json!({"version": 1});
            for (name, text) in places {
                told[name.replace('-', "_")] = text.into();
            }
            let tokens: Map<String, Value> =
                tokens.into_iter().map(|(name, token)| (name.to_owned(), token.into())).collect();
            told["tokens"] = tokens.into();
            output::print(&format!("{told}\n"))?;
        }
    }
    std::future::pending().await
}

/// The tokens that it shows, by the names that profiles have for such identities.
fn wishes(args: &Args, lifetime: i64) -> Vec<(&'static str, Wish)> {
    let of = |user: usize| Wish {
        client: args.client.clone(),
        scope: args.scope.clone(),
        lifetime,
        ..Wish::of(&args.users[user], &args.audience)
    };
    let tenant = |name: &str| Map::from_iter([("tenant".to_owned(), name.into())]);
    vec![
        ("a", of(0)),
        ("b", of(1)),
        ("a-new-token", of(0)),
        ("same-user-other-client", Wish { client: format!("other-{}", args.client), ..of(0) }),
        ("other-tenant", Wish { claims: tenant("other"), ..of(0) }),
        ("wrong-audience", Wish { audience: "https://another-server.example/mcp".into(), ..of(0) }),
        ("expired", Wish { lifetime: -3600, ..of(0) }),
        ("other-key", Wish { foreign_key: true, ..of(0) }),
    ]
}

const HELP: &str = "\
An issuer of OAuth access tokens for tests and demonstrations: JSON Web Tokens signed with ES256. It gives \
anybody any token and listens on this machine only; no server that matters may trust it. Its keys end with it.

The tokens that it shows: `a` and `b` are good; `a-new-token` is another one of A; the others should be refused \
everywhere, or open nothing of A's. All have the claim `tenant`. Further ones come from its token endpoint (client \
credentials, any client id, the secret shown). The form may have `subject`, `resource`, `scope`, `tenant` and \
`lifetime` (in seconds; -60 has expired a minute ago). Without `resource` a token is for no server, and a server \
must refuse it; without `subject` the client acts for itself.

POST /rotate exchanges its key; the former one stays published until the next exchange. POST /introspect and POST \
/revoke answer clients (RFC 7662, RFC 7009).

Examples:
  handfast issuer --audience http://127.0.0.1:8080/mcp
  handfast issuer --audience http://127.0.0.1:8080/mcp --port 9000 --format json
  curl -u any:$SECRET -d grant_type=client_credentials -d subject=alice -d lifetime=-60 \\
       -d resource=http://127.0.0.1:8080/mcp http://127.0.0.1:9000/token";
