//! Who waits for what from one child: which of its messages belongs to whom. Nothing is read or written here.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use handfast::{Caller, ClientId, Principal, Tenant};
use tokio::sync::{Notify, mpsc};

use super::{
    ear::{Ear, Heard, Loss, Waiting},
    message::{Kind, Message, PROGRESS, number},
};

/// On whose behalf something is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    principal: Principal,
    tenant: Option<Tenant>,
    client: Option<ClientId>,
}

impl Owner {
    /// `None` for an anonymous caller: nobody can be told from anybody.
    pub(super) fn of(caller: &Caller) -> Option<Self> {
        let principal = caller.principal()?.clone();
        Some(Self { principal, tenant: caller.tenant().cloned(), client: caller.client().cloned() })
    }
}

struct Running {
    ear: Ear,
    owner: Owner,
    id: String,
    token: Option<String>,
    listens: bool,
    /// The child knows that nobody waits any more.
    told: bool,
}

/// The requests that one child has to answer.
pub(super) struct Table {
    state: Mutex<State>,
    longest: usize,
    kind: Talk,
    /// Something has begun or ended.
    pub(super) stirred: Notify,
    /// The child is to end.
    pub(super) over: Notify,
}

/// How a child is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Talk {
    /// A session of one user, in the revisions that have them.
    Session,
    /// Single requests of one user.
    Single,
    /// Single requests of all users.
    Shared,
}

struct State {
    last: u64,
    running: BTreeMap<u64, Running>,
    /// What was said unasked waits here for whoever opens the stream for it, one at a time.
    unasked: Option<Ear>,
    listener: Option<mpsc::UnboundedReceiver<Waiting>>,
    over: bool,
    proven: bool,
}

impl State {
    /// Says something to who waits for this. Whether there was room for it.
    fn say(&mut self, number: u64, heard: Heard) -> bool {
        let Some(running) = self.running.get_mut(&number) else { return false };
        let is_heard = running.ear.say(heard);
        if !is_heard {
            // What a stream has missed cannot be told later.
            running.ear.lose(Loss::Unread);
        }
        is_heard
    }

    fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.listener.is_some()
    }
}

/// Why a request does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum No {
    /// The child ends.
    Over,
    /// It has too much to do.
    Full,
}

impl Table {
    pub(super) fn new(kind: Talk, longest: usize) -> Self {
        let (unasked, listener) = Ear::new(longest);
        let state = State {
            last: 0,
            running: BTreeMap::new(),
            unasked: (kind == Talk::Session).then_some(unasked),
            listener: Some(listener),
            over: false,
            proven: false,
        };
        Self { state: Mutex::new(state), longest, kind, stirred: Notify::new(), over: Notify::new() }
    }

    /// Takes a request in: its number towards the child, and what is said to it.
    pub(super) fn begin(
        &self,
        owner: &Owner,
        request: &Message<'_>,
    ) -> Result<(u64, mpsc::UnboundedReceiver<Waiting>), No> {
        let mut state = self.lock();
        if state.over {
            return Err(No::Over);
        }
        if state.running.len() >= MOST_RUNNING {
            return Err(No::Full);
        }
        let (ear, hear) = Ear::new(self.longest);
        state.last += 1;
        let running = Running {
            ear,
            owner: owner.clone(),
            id: request.id.unwrap_or_default().to_owned(),
            token: request.token().map(str::to_owned),
            listens: request.is(LISTEN),
            told: false,
        };
        let number = state.last;
        state.running.insert(number, running);
        drop(state);
        self.stirred.notify_one();
        Ok((number, hear))
    }

    /// Nobody waits for this any more. Whether the child has to be told.
    pub(super) fn leave(&self, number: u64) -> bool {
        let left = self.lock().running.remove(&number);
        self.stirred.notify_one();
        left.is_some_and(|running| !running.told)
    }

    /// The number of the request that this user cancels by its id, where there is exactly one. A child need not answer what
    /// is cancelled, so that it is answered here, as the SDKs do it over HTTP: whoever waits for it would wait in vain.
    pub(super) fn cancelled(&self, owner: &Owner, id: &str) -> Option<u64> {
        let mut state = self.lock();
        let mut all = state.running.iter().filter(|(_, running)| running.id == id && running.owner == *owner);
        let (Some(number), None) = (all.next().map(|(number, _)| *number), all.next()) else { return None };
        if let Some(stream) = state.running.get_mut(&number).filter(|running| running.listens) {
            // It ends when its client closes it.
            stream.told = true;
            return Some(number);
        }
        let running = state.running.remove(&number)?;
        let error = format!(r#"{{"code":{CANCELLED_CODE},"message":"Request cancelled"}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, running.id);
        running.ear.say(Heard::Answer { text, error: Some(CANCELLED_CODE) });
        self.stirred.notify_one();
        Some(number)
    }

    /// Passes on what the child has said; what it is to be answered at once, if anything.
    pub(super) fn hear(&self, message: &Message<'_>, text: &str) -> Option<String> {
        let mut state = self.lock();
        match message.kind {
            Kind::Response => {
                let number = number(message.id?)?;
                // Nobody waits for it, or no longer.
                let running = state.running.remove(&number)?;
                state.proven = true;
                let text = message.restored(number, &running.id, None);
                if !running.ear.say(Heard::Answer { text, error: message.error() }) {
                    running.ear.lose(Loss::Unread);
                }
                None
            }
            Kind::Notification if message.is_addressed() => {
                let number = message.belongs()?;
                let running = state.running.get(&number)?;
                if message.is(PROGRESS) && running.token.is_none() {
                    return None;
                }
                let text = message.restored(number, &running.id, running.token.as_deref());
                state.say(number, Heard::Message { text, asks: false });
                None
            }
            kind => self.unasked(&mut state, kind == Kind::Request, message, text),
        }
    }

    /// What belongs to no request in particular: to the only one that runs, to the stream for what is said unasked, or to
    /// nobody. Never to another user.
    fn unasked(&self, state: &mut State, asks: bool, message: &Message<'_>, text: &str) -> Option<String> {
        let said = || Heard::Message { text: text.to_owned(), asks };
        let mut waiting = state.running.iter().filter(|(_, running)| !running.listens).map(|(number, _)| *number);
        let (last, other) = (waiting.next_back(), waiting.next_back());
        let only = last.filter(|_| other.is_none());
        let is_heard = match self.kind {
            Talk::Shared => false,
            // There, a server that asks something itself breaks the protocol.
            Talk::Single => !asks && only.is_some_and(|only| state.say(only, said())),
            // A question finds somebody to be put to, if anybody is there.
            Talk::Session => match only.or(last.filter(|_| asks && state.listener.is_some())) {
                Some(number) => state.say(number, said()),
                None => state.unasked.as_ref().is_some_and(|ear| ear.say(said())),
            },
        };
        // A child that asks nobody would wait for ever.
        let refused = || REFUSED.replace("ID", message.id.unwrap_or("null"));
        (asks && !is_heard && self.kind == Talk::Session).then(refused)
    }

    /// A line that was too long to be kept was the answer to this.
    pub(super) fn lose(&self, number: u64) {
        if let Some(running) = self.lock().running.remove(&number) {
            running.ear.lose(Loss::TooLong);
        }
    }

    /// The stream for what is said unasked; `None` where somebody has it.
    pub(super) fn listen(&self) -> Option<mpsc::UnboundedReceiver<Waiting>> {
        let listener = self.lock().listener.take();
        self.stirred.notify_one();
        listener
    }

    pub(super) fn listen_no_more(&self, listener: mpsc::UnboundedReceiver<Waiting>) {
        self.lock().listener = Some(listener);
        self.stirred.notify_one();
    }

    /// Whether nobody waits, and nobody listens.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().is_quiet()
    }

    /// Whether no request runs.
    pub(super) fn is_free(&self) -> bool {
        self.lock().running.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Whether the child has ever answered.
    pub(super) fn is_proven(&self) -> bool {
        self.lock().proven
    }

    /// Nothing begins any more, unless something runs.
    pub(super) fn close_if_quiet(&self) -> bool {
        let mut state = self.lock();
        let is_quiet = state.is_quiet();
        state.over |= is_quiet;
        is_quiet
    }

    /// The child ends: whatever runs is lost.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        state.unasked = None;
        let lost = std::mem::take(&mut state.running);
        drop(state);
        lost.into_values().for_each(|running| running.ear.lose(Loss::Ended));
        self.over.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a stream of notifications that has no end of its own.
pub(super) const LISTEN: &str = "subscriptions/listen";
/// What is given to a child whose question reaches nobody.
const REFUSED: &str = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"nobody listens"}}"#;
/// How many requests may run in one child.
const MOST_RUNNING: usize = 1_024;

/// As the SDKs say it.
const CANCELLED_CODE: i64 = -32800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_unasked_waits_until_there_is_too_much_of_it() {
        let table = Table::new(Talk::Session, 300);
        let question = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
        let message = Message::read(question).expect("a message");

        let refused: Vec<bool> = (0..6).map(|_| table.hear(&message, question).is_some()).collect();

        assert_eq!(refused, [false, false, false, false, true, true]);
        let mut listener = table.listen().expect("a listener");
        assert!(table.listen().is_none());
        let Ok((Heard::Message { text, asks: true }, room)) = listener.try_recv() else { panic!("nothing waits") };
        assert_eq!(text, question);
        drop(room);
        assert!(table.hear(&message, question).is_none(), "there is room again");
    }

    #[test]
    fn who_asked_for_no_progress_hears_of_none() {
        let issuer = handfast::Issuer::new("https://id.example").expect("an issuer");
        let owner = Owner::of(&Caller::trusted(Principal::new(issuer, "alice").expect("one"))).expect("an owner");
        let request = Message::read(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#).expect("a message");
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}"#;
        let table = Table::new(Talk::Single, 300);

        let (number, mut hears) = table.begin(&owner, &request).expect("a beginning");
        table.hear(&Message::read(progress).expect("a message"), progress);

        assert_eq!(number, 1);
        assert!(hears.try_recv().is_err());
    }

    #[test]
    fn without_sessions_nothing_waits_for_anybody() {
        let question = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
        let message = Message::read(question).expect("a message");

        for talk in [Talk::Single, Talk::Shared] {
            let table = Table::new(talk, 300);
            table.hear(&message, question);
            assert!(table.listen().expect("a listener").try_recv().is_err());
        }
    }
}
