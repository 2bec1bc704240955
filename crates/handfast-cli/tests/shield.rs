//! Every twin as a child process of the gateway: what was confirmed bare is refuted behind it, or stands in `shield.txt` and, with
//! the reason, in `docs/limits.md`.

#[path = "../../handfast-gateway/tests/support/front.rs"]
mod front;
#[path = "../../handfast-gateway/tests/support/shield.rs"]
mod shield;
#[path = "../../handfast-probe/tests/support/table.rs"]
mod table;

use std::{path::Path, sync::Arc, time::Duration};

use handfast_gateway::upstream::{Children, StdioOptions, StdioUpstream};
use handfast_probe::target::Address;
use handfast_twins::Twin;
use shield::Ready;

async fn ready(twin: &'static Twin) -> Ready {
    let program = env!("CARGO_BIN_EXE_handfast").to_owned();
    let arguments = ["twin", twin.name, "--transport", "stdio"].map(str::to_owned).to_vec();
    let upstream = StdioUpstream::new(StdioOptions {
        program: program.clone(),
        arguments: arguments.clone(),
        environment: Vec::new(),
        hidden: Vec::new(),
        folder: None,
        children: Children::PerPrincipal,
        most_children: 100,
        idle: Duration::from_secs(60),
        patience: Duration::from_secs(30),
        longest_message: 1 << 20,
    });
    Ready { address: Address::Stdio { program, arguments }, upstream: Arc::new(upstream), served: None }
}

#[test]
fn what_is_confirmed_bare_is_refuted_behind_the_gateway() {
    shield::agrees(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shield.txt")), ready);
}

#[test]
fn what_the_gateway_cannot_do_stands_in_the_limits() {
    shield::is_explained(include_str!("shield.txt"), include_str!("../../../docs/limits.md"));
}
