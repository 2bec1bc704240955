//! The server that stands behind every proxy of this benchmark, and the load that goes through it. `gateway.py` starts
//! both and reads the clocks; one thread each is enough.

mod client;
mod load;
mod upstream;

use clap::Parser;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::LocalSet,
};

type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
enum Part {
    /// Serves MCP on a free port of the loopback; prints its URL, and ends with its input.
    Upstream,
    /// Starts a PostgreSQL; prints the URL of an empty database, and ends with its input.
    Postgres,
    /// Opens connections and prints "ready"; on a line of input makes requests and prints what came out.
    Load(load::Load),
    /// Opens streams that nothing comes through and prints "ready"; ends with its input.
    Idle(load::Idle),
}

fn main() {
    let part = Part::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = LocalSet::new().block_on(&runtime, async {
        match part {
            Part::Upstream => upstream::serve().await,
            Part::Postgres => {
                // Nobody waits for a disk that this machine shares with others.
                let cluster = handfast_testbed::Cluster::start(&["-c", "fsync=off"]);
                println!("{}", cluster.database());
                input().await;
                Ok(())
            }
            Part::Load(load) => load.run().await,
            Part::Idle(idle) => idle.run().await,
        }
    });
    // What still waits for input would keep the runtime.
    runtime.shutdown_background();
    if let Err(why) = done {
        eprintln!("{why}");
        std::process::exit(1);
    }
}

/// Waits for a line of input, or its end.
async fn input() {
    let _ = BufReader::new(tokio::io::stdin()).read_line(&mut String::new()).await;
}
