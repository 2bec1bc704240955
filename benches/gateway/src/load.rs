//! The load: callers side by side, each on a connection of its own, each waiting for an answer before it goes on.
#![expect(clippy::disallowed_methods, reason = "speed is measured in real time")]

use std::{cell::Cell, rc::Rc, time::Duration};

use clap::Args;
use serde_json::Value;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::{
    Failure,
    client::{Client, Leg, Way, names},
    input,
};

/// After so long something hangs.
const PATIENCE: Duration = Duration::from_secs(1800);

#[derive(Args)]
pub struct Load {
    #[command(flatten)]
    way: Way,
    #[arg(long, default_value_t = 1)]
    connections: u64,
    /// Ends after so long.
    #[arg(long, default_value_t = 3600.0)]
    seconds: f64,
    /// Ends after so many requests.
    #[arg(long, default_value_t = u64::MAX)]
    requests: u64,
}

#[derive(Args)]
pub struct Idle {
    #[command(flatten)]
    way: Way,
    #[arg(long)]
    streams: usize,
}

impl Load {
    /// Prints one line of JSON: how many requests in how long, and how many microseconds one took.
    pub async fn run(self) -> Result<(), Failure> {
        let (mut clients, mut callers, mut took) = (Vec::new(), JoinSet::new(), Vec::new());
        for _ in 0..self.connections {
            clients.push(Client::new(&self.way).await?);
        }
        println!("ready");
        input().await;
        let begun = Instant::now();
        let (end, left) = (begun + Duration::from_secs_f64(self.seconds), Rc::new(Cell::new(self.requests)));
        for client in clients.drain(..) {
            callers.spawn_local(Caller { client, took: Vec::new(), left: left.clone() }.run(self.way.leg, end));
        }
        while let Some(ended) = timeout(PATIENCE, callers.join_next()).await.map_err(|_| "something hangs")? {
            let caller = ended??;
            took.extend(caller.took);
            clients.push(caller.client);
        }
        let seconds = begun.elapsed().as_secs_f64();
        took.sort_unstable();
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1000.0;
        let (requests, p50, p99) = (took.len(), at(0.5), at(0.99));
        println!(r#"{{"requests":{requests},"seconds":{seconds},"p50":{p50},"p99":{p99}}}"#);
        for client in clients {
            client.end().await;
        }
        Ok(())
    }
}

struct Caller {
    client: Client,
    took: Vec<Duration>,
    /// How many requests everybody may still make.
    left: Rc<Cell<u64>>,
}

impl Caller {
    async fn run(mut self, leg: Leg, end: Instant) -> Result<Self, String> {
        let (mut basket, mut turn) = (String::new(), 0);
        // At least one each, however short the time.
        while turn == 0 || (Instant::now() < end && self.left.get() > 0) {
            self.turn(leg, turn, &mut basket).await.map_err(|why| why.to_string())?;
            turn += 1;
        }
        Ok(self)
    }

    async fn turn(&mut self, leg: Leg, turn: u64, basket: &mut String) -> Result<(), Failure> {
        if leg != Leg::Mix {
            self.call("whoami", "{}", "").await?;
            return Ok(());
        }
        // Of twenty-one requests one opens, two buy and eighteen read.
        let arguments = format!(r#"{{"basket_id":"{basket}"}}"#);
        let right = match turn % 20 {
            0 => {
                let opened = self.call("open_basket", "{}", "").await?;
                opened["structuredContent"]["basket_id"].as_str().unwrap_or_default().clone_into(basket);
                names(&opened, basket)
            }
            10 => {
                let asked = self.call("buy", &arguments, "").await?;
                let said = r#""inputResponses":{"confirm":{"action":"accept","content":{"yes":true}}}"#;
                let state = asked["requestState"].as_str().filter(|_| asked["resultType"] == "input_required");
                let state = state.ok_or("buy: nothing was asked")?;
                let done = self.call("buy", &arguments, &format!(r#"{said},"requestState":"{state}","#)).await?;
                names(&done, basket) && done["structuredContent"]["bought"] == true
            }
            _ => names(&self.call("read_basket", &arguments, "").await?, basket),
        };
        if right { Ok(()) } else { Err(format!("turn {turn}: an answer about something else").into()) }
    }

    async fn call(&mut self, tool: &str, arguments: &str, more: &str) -> Result<Value, Failure> {
        let begun = Instant::now();
        let result = self.client.call(tool, arguments, more).await?;
        self.took.push(begun.elapsed());
        self.left.set(self.left.get().saturating_sub(1));
        Ok(result)
    }
}

impl Idle {
    pub async fn run(self) -> Result<(), Failure> {
        let mut open = Vec::new();
        for nth in 1..=self.streams {
            let opened = timeout(Duration::from_secs(10), Client::listening(&self.way)).await;
            open.push(opened.map_err(Failure::from).flatten().map_err(|why| format!("stream {nth}: {why}"))?);
        }
        println!("ready");
        input().await;
        for (client, stream) in open {
            drop(stream);
            client.end().await;
        }
        Ok(())
    }
}
