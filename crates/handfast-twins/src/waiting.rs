//! Who waits for which answer, where a server keeps one list of that for all of its connections: whoever asks under an id
//! that is waited under already takes the place of the other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use handfast_wire::message::{self, Message};
use tokio::sync::oneshot;

use crate::http::Reply;

/// Where answers go, by the ids of their requests.
#[derive(Clone, Default)]
pub(crate) struct Waiting(Arc<Mutex<BTreeMap<String, oneshot::Sender<Reply>>>>);

impl Waiting {
    /// Works on a request for a while, and gives the answer to whoever waits under its id by then.
    pub(crate) async fn answered(&self, body: &[u8], respond: impl FnOnce() -> Reply) -> Reply {
        let Ok(Message::Request(request)) = message::parse(body) else { return respond() };
        let id = request.id.to_value().to_string();
        let (sender, mut receiver) = oneshot::channel();
        self.list().insert(id.clone(), sender);
        let reply = respond();
        let reads = request.params.get("name").is_some_and(|name| name == "read_workspace");
        if reads {
            tokio::time::sleep(WORKING).await;
        }
        if let Some(whoever_waits) = self.list().remove(&id) {
            // Whoever is gone gets none.
            let _ = whoever_waits.send(reply);
        }
        receiver.try_recv().unwrap_or_else(|_| Reply::bare(500))
    }

    fn list(&self) -> MutexGuard<'_, BTreeMap<String, oneshot::Sender<Reply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const WORKING: Duration = Duration::from_millis(5);
