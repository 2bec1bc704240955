//! Answers that come from here and not from the server behind.

use axum_core::body::Body;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use serde_json::Value;

/// This, as JSON.
pub(super) fn json(status: u16, body: &Value) -> Response<Body> {
    let mut response = bare(status);
    *response.body_mut() = Body::from(body.to_string());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Nothing but a status.
pub(super) fn bare(status: u16) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
