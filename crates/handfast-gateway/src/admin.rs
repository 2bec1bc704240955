//! Health, readiness and metrics, on a listener of their own: nobody from outside gets there.

use std::{sync::Arc, time::Duration};

use axum_core::body::Body;
use handfast::{Digest, Key, store::Store};
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Serves them until it is dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    store: Arc<dyn Store>,
    metrics: impl Fn() -> String + Send + Sync + 'static,
) {
    let metrics = Arc::new(metrics);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (store, metrics) = (store.clone(), metrics.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (store, metrics) = (store.clone(), metrics.clone());
            async move { Ok::<_, std::convert::Infallible>(answer(request.uri().path(), &*store, &*metrics).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_secs(5))
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

async fn answer(path: &str, store: &dyn Store, metrics: &(dyn Fn() -> String + Send + Sync)) -> Response<Body> {
    match path {
        "/healthz" => said(StatusCode::OK, "ok\n".to_owned()),
        "/readyz" if answers(store).await => said(StatusCode::OK, "ready\n".to_owned()),
        // Without its store it refuses everybody.
        "/readyz" => said(StatusCode::SERVICE_UNAVAILABLE, "the store does not answer\n".to_owned()),
        "/metrics" => said(StatusCode::OK, metrics()),
        _ => said(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

/// Whether the store answers: it is asked for a record that no store has.
pub(crate) async fn answers(store: &dyn Store) -> bool {
    let nothing = Key { tenant: None, digest: Digest::from_bytes(&[0; 32]).expect("32 bytes") };
    store.find(&nothing).await.is_ok()
}

fn said(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
