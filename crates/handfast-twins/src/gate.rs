//! The gate of a server with access tokens: who gets in, and as whom. A token's text says what a real one has in its
//! claims: `alice` is good, `expired-alice` is not any more, `elsewhere-alice` was issued for another server and
//! `client-alice` for the client itself. Nobody has issued any other. Each guard is one method.

use serde_json::{Value, json};

use crate::{
    caller::Principal,
    http::{Headers, PATH, Reply},
    signed,
};

/// What the gate heeds. The sound one heeds all of it.
pub(crate) trait Gate: Send + Sync {
    /// Whether somebody without a token stays outside.
    fn minds_absence(&self) -> bool {
        true
    }

    /// Whether a token that nobody has issued is refused.
    fn minds_who_issued(&self) -> bool {
        true
    }

    /// Whether a token is refused when its time is over.
    fn minds_time(&self) -> bool {
        true
    }

    /// Whether a token for another server is refused.
    fn minds_audience(&self) -> bool {
        true
    }

    /// Whether a token for the client itself is refused.
    fn minds_client_as_audience(&self) -> bool {
        true
    }

    /// Whether tokens are JSON Web Tokens, whose subject is the text. Not a guard.
    fn knows_signed(&self) -> bool {
        false
    }

    /// Whether their signature is verified.
    fn minds_signature(&self) -> bool {
        true
    }

    /// Whether a token in the query string is taken.
    fn takes_query(&self) -> bool {
        false
    }

    /// Whether a refusal says where the server's metadata are, and they are there.
    fn says_where(&self) -> bool {
        true
    }
}

/// Whom the token's issuer knows.
const USERS: [&str; 3] = ["alice", "bob", "acme-carol"];

/// Who gets in with these headers and this query; `None` for nobody.
pub(crate) fn admitted(gate: &dyn Gate, headers: &Headers, query: Option<&str>) -> Option<Principal> {
    let pairs = query.unwrap_or_default().split('&');
    let in_query = pairs.filter_map(|pair| pair.strip_prefix("access_token=")).next();
    let token = headers.bearer().or(in_query.filter(|_| gate.takes_query()));
    let Some(token) = token else {
        return (!gate.minds_absence()).then(Principal::local);
    };
    let read = if gate.knows_signed() { signed::read(token, gate.minds_signature())? } else { token.to_owned() };
    let token = read.as_str();
    let kinds = [
        ("expired-", gate.minds_time()),
        ("elsewhere-", gate.minds_audience()),
        ("client-", gate.minds_client_as_audience()),
    ];
    let kind = kinds.into_iter().find_map(|(kind, minds)| Some((token.strip_prefix(kind)?, minds)));
    let (user, minds) = kind.unwrap_or((token, false));
    let caller = Principal::new(user);
    let issued = USERS.contains(&caller.as_str()) || !gate.minds_who_issued();
    (issued && !minds).then_some(caller)
}

/// Where a server's metadata stand (RFC 9728).
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// A refusal that says where they are.
pub(crate) fn unauthorized(headers: &Headers) -> Reply {
    let host = headers.one("host").unwrap_or("127.0.0.1");
    Reply::bare(401).with("www-authenticate", &format!("Bearer resource_metadata=\"http://{host}{METADATA}\""))
}

/// The metadata.
pub(crate) fn metadata(headers: &Headers) -> Reply {
    let host = headers.one("host").unwrap_or("127.0.0.1");
    let told: Value = json!({
        "resource": format!("http://{host}{PATH}"),
        "authorization_servers": [format!("http://{host}")],
        "bearer_methods_supported": ["header"],
    });
    let mut reply = Reply::bare(200).with("content-type", "application/json");
    reply.body = told.to_string().into_bytes();
    reply
}

/// Where the metadata of its issuer stand, which is at the same place (RFC 8414).
pub(crate) const ISSUER: &str = "/.well-known/oauth-authorization-server";

/// They.
pub(crate) fn issuer(headers: &Headers) -> Reply {
    let host = headers.one("host").unwrap_or("127.0.0.1");
    let told = json!({"issuer": format!("http://{host}"), "token_endpoint": format!("http://{host}/token")});
    let mut reply = Reply::bare(200).with("content-type", "application/json");
    reply.body = told.to_string().into_bytes();
    reply
}
