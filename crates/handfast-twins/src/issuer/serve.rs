//! What the issuer answers: metadata (RFC 8414), keys, tokens for clients (RFC 6749, section 4.4), introspection
//! (RFC 7662) and revocation (RFC 7009).

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Desk, Wish, claims_of, seconds_now};

pub(super) fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(metadata))
        .route("/.well-known/openid-configuration", get(metadata))
        .route("/jwks", get(async |State(desk): State<Arc<Desk>>| written(200, &desk.jwks())))
        .route("/token", post(token))
        .route("/introspect", post(introspect))
        .route("/revoke", post(revoke))
        .route("/rotate", post(rotate))
        .with_state(desk)
}

async fn metadata(State(desk): State<Arc<Desk>>) -> Response {
    let at = |path: &str| format!("{}{path}", desk.url);
    let told = json!({
        "issuer": desk.url,
        "jwks_uri": at("/jwks"),
        "token_endpoint": at("/token"),
        "introspection_endpoint": at("/introspect"),
        "revocation_endpoint": at("/revoke"),
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "response_types_supported": [],
    });
    written(200, &told)
}

/// A token for a client, by its secret. `resource` (RFC 8707) says for which server; `subject`, which no other issuer knows,
/// for whom, and without it the client acts for itself; `tenant` of which tenant; `lifetime` how many seconds it lives, and one
/// with less than none has expired.
async fn token(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let form = form(&body);
    let Some(client) = client(&desk, &headers, &form) else { return unknown_client() };
    if form.get("grant_type").map(String::as_str) != Some("client_credentials") {
        let told = "grant_type=client_credentials is all there is, in a form (application/x-www-form-urlencoded)";
        return written(400, &json!({"error": "unsupported_grant_type", "error_description": told}));
    }
    let lifetime = form.get("lifetime").map_or(Some(3600), |seconds| seconds.parse().ok());
    let Some(lifetime) = lifetime.filter(|seconds: &i64| (-1_000_000_000..1_000_000_000).contains(seconds)) else {
        return written(400, &json!({"error": "invalid_request", "error_description": "lifetime: not seconds"}));
    };
    let subject = form.get("subject").unwrap_or(&client);
    let audience = form.get("resource").or(form.get("audience")).map_or(Value::Null, |one| one.as_str().into());
    let scope = form.get("scope").cloned();
    let mut wish = Wish { client: client.clone(), audience, scope, lifetime, ..Wish::of(subject, "") };
    if let Some(tenant) = form.get("tenant") {
        wish.claims.insert("tenant".to_owned(), tenant.as_str().into());
    }
    written(200, &json!({"access_token": desk.token(&wish), "token_type": "Bearer", "expires_in": lifetime}))
}

async fn introspect(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let form = form(&body);
    if client(&desk, &headers, &form).is_none() {
        return unknown_client();
    }
    let token = form.get("token").map_or("", String::as_str);
    let claims = claims_of(token).filter(|claims| claims.get("iss") == Some(&Value::from(desk.url.as_str())));
    let alive = |exp: &Value| exp.as_i64().is_some_and(|exp| exp > seconds_now());
    let told = match claims {
        Some(mut claims) if claims.get("exp").is_some_and(alive) && !desk.revoked().contains(token) => {
            claims.insert("active".into(), true.into());
            Value::Object(claims)
        }
        _ => json!({"active": false}),
    };
    written(200, &told)
}

async fn revoke(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    let form = form(&body);
    if client(&desk, &headers, &form).is_none() {
        return unknown_client();
    }
    if let Some(token) = form.get("token") {
        desk.revoked().insert(token.clone());
    }
    StatusCode::OK.into_response()
}

async fn rotate(State(desk): State<Arc<Desk>>) -> Response {
    match desk.rotate() {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn unknown_client() -> Response {
    let told = "any client id, and the secret that was shown at the start, as HTTP Basic or in the form";
    written(401, &json!({"error": "invalid_client", "error_description": told}))
}

/// Who asks: every client has the same secret, shown in one of the two ways of RFC 6749, section 2.3.1.
fn client(desk: &Desk, headers: &HeaderMap, form: &BTreeMap<String, String>) -> Option<String> {
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let (id, secret) = match basic {
        Some(basic) => {
            let text = String::from_utf8(STANDARD.decode(basic).ok()?).ok()?;
            let (id, secret) = text.split_once(':')?;
            (plain(id), plain(secret))
        }
        None => (form.get("client_id")?.clone(), form.get("client_secret")?.clone()),
    };
    (secret == desk.secret && !id.is_empty()).then_some(id)
}

fn form(body: &[u8]) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(body).into_owned().collect()
}

fn plain(encoded: &str) -> String {
    let whole = format!("v={encoded}");
    url::form_urlencoded::parse(whole.as_bytes()).next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn written(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}
