//! What the gateway itself says: every refusal, in the protocol's form, and no more than a caller may know.

use axum_core::body::Body;
use handfast::{names, seal::StateRefused};
use handfast_wire::meta;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The request is not one: this status, this code, these words.
    Protocol(StatusCode, i64, &'static str),
    /// A state that is not ours, not this caller's, not of this request, or not in time.
    State,
    /// A handle that is not the caller's, or not a handle.
    Handle(String),
    /// The server asks what the client has not said that it can be asked: these capabilities are missing.
    Undeclared(Value),
    /// A tool that no rule knows, where only such may be called.
    NoRule,
    /// The server behind has no room for another caller.
    Full,
    /// The store does not answer: nothing was done.
    Store,
    /// The server behind does not answer, or says what cannot be read.
    Upstream(&'static str),
}

impl Rejection {
    /// The name of each, in counters.
    pub(crate) const SLUGS: [&'static str; 8] =
        ["protocol", "state", "handle", "undeclared", "no-rule", "full", "store", "upstream"];

    /// Its name in counters.
    pub(crate) fn slug(&self) -> &'static str {
        let [protocol, state, handle, undeclared, no_rule, full, store, upstream] = Self::SLUGS;
        match self {
            Self::Protocol(..) => protocol,
            Self::State => state,
            Self::Handle(_) => handle,
            Self::Undeclared(_) => undeclared,
            Self::NoRule => no_rule,
            Self::Full => full,
            Self::Store => store,
            Self::Upstream(_) => upstream,
        }
    }

    /// A request that is wrong in itself.
    pub(crate) fn bad(code: i64, told: &'static str) -> Self {
        Self::Protocol(StatusCode::BAD_REQUEST, code, told)
    }

    /// Headers that are not what the body says.
    pub(crate) fn mismatch(told: &'static str) -> Self {
        Self::bad(meta::HEADER_MISMATCH, told)
    }

    /// As the answer to a request with this id, of this method.
    pub(crate) fn response(&self, id: &str, method: &str) -> Response<Body> {
        let (status, body) = (self.status(), self.body(id, method));
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Protocol(status, ..) => *status,
            // "Errors about the request's contents are the protocol's, not the transport's."
            Self::State | Self::Handle(_) | Self::NoRule => StatusCode::OK,
            Self::Undeclared(_) => StatusCode::BAD_REQUEST,
            Self::Full | Self::Store => StatusCode::SERVICE_UNAVAILABLE,
            Self::Upstream(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// As a message: the answer to a request with this id, which is JSON already.
    pub(crate) fn body(&self, id: &str, method: &str) -> String {
        let told = match self {
            Self::Handle(told) if method == "tools/call" => {
                let result =
                    json!({"content": [{"type": "text", "text": told}], "isError": true, "resultType": "complete"});
                return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            }
            Self::Protocol(_, code, told) => error(*code, told),
            Self::Handle(told) => error(meta::INVALID_PARAMS, told),
            Self::State => error(StateRefused::CODE.into(), StateRefused::MESSAGE),
            Self::NoRule => error(meta::INVALID_PARAMS, "unknown tool"),
            Self::Undeclared(missing) => json!({
                "code": meta::MISSING_CAPABILITY,
                "message": "the client has not declared a capability that this needs",
                "data": {"requiredCapabilities": missing},
            }),
            Self::Full | Self::Store => error(meta::INTERNAL_ERROR, "not now; the same request may succeed later"),
            Self::Upstream(told) => error(meta::INTERNAL_ERROR, told),
        };
        match id {
            "" => format!(r#"{{"jsonrpc":"2.0","error":{told}}}"#),
            id => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{told}}}"#),
        }
    }
}

impl From<handfast::Refused> for Rejection {
    fn from(refused: handfast::Refused) -> Self {
        match refused.outward() {
            handfast::Outward::Unavailable => Self::Store,
            _ => Self::Handle(refused.to_string()),
        }
    }
}

impl From<handfast::MintError> for Rejection {
    fn from(error: handfast::MintError) -> Self {
        match error.denial() {
            handfast::Denial::Unavailable => Self::Store,
            _ => Self::Upstream("the server's answer holds a handle that cannot be given to this caller"),
        }
    }
}

impl From<StateRefused> for Rejection {
    fn from(refused: StateRefused) -> Self {
        match refused.denial() {
            handfast::seal::StateDenial::Unavailable => Self::Store,
            _ => Self::State,
        }
    }
}

fn error(code: i64, told: &str) -> Value {
    json!({"code": code, "message": told})
}

/// The form of a name in JSON.
pub(crate) fn written(inner: &str, form: names::Form) -> String {
    match form {
        names::Form::Number => inner.to_owned(),
        names::Form::Text => Value::from(inner).to_string(),
    }
}
