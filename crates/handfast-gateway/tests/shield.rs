//! Every twin over HTTP, bare and behind the gateway: what was confirmed bare is refuted behind it, or stands in `shield.txt`
//! and, with the reason, in `docs/limits.md`.

#[path = "support/front.rs"]
mod front;
#[path = "support/shield.rs"]
mod shield;
#[path = "../../handfast-probe/tests/support/table.rs"]
mod table;

use std::{path::Path, sync::Arc};

use handfast_gateway::upstream::{HttpUpstream, Identity};
use handfast_probe::target::Address;
use handfast_twins::{Answers, Twin, serve_http};
use shield::Ready;

async fn ready(twin: &'static Twin) -> Ready {
    let served = serve_http(twin, 0, Answers::Json).await.expect("a twin");
    let identity = Identity { header: http::header::AUTHORIZATION, value: "Bearer {subject}".to_owned() };
    Ready {
        address: Address::Http(served.url().parse().expect("a URL")),
        upstream: Arc::new(HttpUpstream::new(&served.url(), None, Some(identity)).expect("an upstream")),
        served: Some(served),
    }
}

#[test]
fn what_is_confirmed_bare_is_refuted_behind_the_gateway() {
    shield::agrees(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shield.txt")), ready);
}

#[test]
fn what_the_gateway_cannot_do_stands_in_the_limits() {
    shield::is_explained(include_str!("shield.txt"), include_str!("../../../docs/limits.md"));
}
