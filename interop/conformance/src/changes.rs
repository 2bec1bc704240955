//! Who listens is told when a list changes. The lists stay as they are: what counts is who hears of it, and who does not.

use rmcp::service::SubscriptionContext;
use tokio::sync::broadcast::{
    Sender,
    error::RecvError::{Closed, Lagged},
};

#[derive(Clone, Copy)]
pub enum Change {
    Tools,
    Prompts,
}

#[derive(Clone)]
pub struct Changes(Sender<Change>);

impl Default for Changes {
    fn default() -> Self {
        Self(Sender::new(16))
    }
}

impl Changes {
    pub fn announce(&self, change: Change) {
        // It is an error if nobody listens, and nobody has to.
        let _ = self.0.send(change);
    }

    /// Passes on what happens until the subscription ends. What it did not ask for, the SDK holds back.
    pub async fn tell(&self, subscription: &SubscriptionContext) {
        let mut changes = self.0.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return,
                change = changes.recv() => change,
            };
            let _ = match change {
                Ok(Change::Tools) => subscription.sink().notify_tool_list_changed().await,
                Ok(Change::Prompts) => subscription.sink().notify_prompt_list_changed().await,
                Err(Lagged(_)) => continue,
                Err(Closed) => return,
            };
        }
    }
}
