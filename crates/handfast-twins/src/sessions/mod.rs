//! A server of 2025-11-25 and older whose sessions hold state: notes, and the principal that they act as. Over HTTP it
//! takes POST, GET (a stream that soon ends) and DELETE. Every guard is in `guards.rs`.

mod guards;
mod tools;

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use handfast_wire::{
    headers,
    message::{Message, Request},
    meta,
};
use serde_json::{Value, json};

use crate::{
    answer::Refused,
    caller::Principal,
    http::{self, Answers, Headers, Reply},
    legacy,
};
pub(crate) use guards::{ELSEWHERE, EXPIRED, Missing, SessionGuards, Unknown};

/// The server, with the sessions that are open, one map for each replica.
pub(crate) struct Sessions {
    guards: Box<dyn SessionGuards>,
    replicas: Vec<Mutex<BTreeMap<String, Open>>>,
    turn: AtomicUsize,
    made: AtomicU64,
}

/// One open session.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    owner: Principal,
    notes: Vec<String>,
}

impl Open {
    pub(crate) fn of(owner: Principal) -> Self {
        Self { owner, notes: Vec::new() }
    }

    /// Answers a request on stdio, where the process is the session.
    pub(crate) fn answer(&mut self, request: &Request) -> Result<Value, Refused> {
        tools::answer(request, self)
    }
}

type Memory<'s> = MutexGuard<'s, BTreeMap<String, Open>>;

impl Sessions {
    pub(crate) fn new(guards: Box<dyn SessionGuards>) -> Self {
        let replicas = (0..guards.replicas()).map(|_| Mutex::default()).collect();
        Self { guards, replicas, turn: AtomicUsize::new(0), made: AtomicU64::new(0) }
    }

    /// Whose a token is, whether or not its time is over.
    pub(crate) fn identify(&self, headers: &Headers) -> Option<Principal> {
        match headers.bearer() {
            Some(token) => {
                let user = token.strip_prefix(EXPIRED).or_else(|| token.strip_prefix(ELSEWHERE));
                Some(Principal::new(user.unwrap_or(token)))
            }
            None if self.guards.minds_missing_token() => None,
            None => {
                let id = headers.one(headers::SESSION_ID)?;
                self.replicas.iter().find_map(|memory| locked(memory).get(id).map(|open| open.owner.clone()))
            }
        }
    }

    /// The answer to a request at the side path, which asks nobody who they are.
    pub(crate) fn health(&self) -> Reply {
        let mut health = json!({"status": "ok"});
        if self.guards.tells_sessions() {
            let open: Vec<String> =
                self.replicas.iter().flat_map(|memory| locked(memory).keys().cloned().collect::<Vec<_>>()).collect();
            health["sessions"] = open.into();
        }
        let mut reply = Reply::bare(200).with("content-type", "application/json");
        reply.body = health.to_string().into_bytes();
        reply
    }

    pub(crate) fn respond(
        &self,
        answers: Answers,
        caller: &Principal,
        method: &str,
        headers: &Headers,
        body: &[u8],
    ) -> Reply {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.replicas.len();
        let mut memory = locked(&self.replicas[turn]);
        let message = match method {
            "POST" => match http::read(headers, body) {
                Ok(message) => Some(message),
                Err(reply) => return reply,
            },
            _ => None,
        };
        let opening = match &message {
            Some(Message::Request(request)) if request.method == "initialize" => Some(request),
            _ => None,
        };
        if !self.guards.is_good(headers.bearer().unwrap_or_default(), opening.is_some()) {
            return Reply::bare(401).with("www-authenticate", "Bearer error=\"invalid_token\"");
        }
        let presented = headers.one(headers::SESSION_ID).map(|id| self.guards.known_as(id));
        if let Some(request) = opening {
            let id = match presented.filter(|_| self.guards.takes_presented_id()) {
                Some(presented) => presented.to_owned(),
                None => self.fresh(&memory),
            };
            if self.guards.keeps_one_each() {
                memory.retain(|_, session| session.owner != *caller);
            }
            memory.insert(self.guards.known_as(&id).to_owned(), Open::of(caller.clone()));
            return http::frame(answers, request, Ok(legacy::initialized(request))).with(SESSION_HEADER, &id);
        }
        let tool = match &message {
            Some(Message::Request(request)) => request.params.get("name").and_then(Value::as_str),
            _ => None,
        };
        match self.admitted(&mut memory, caller, (method, tool), presented) {
            Ok(place) => self.carry_out(&mut memory, &place, answers, method, message),
            Err(reply) if self.guards.mints_on_refusal() => {
                let id = self.fresh(&memory);
                memory.insert(id.clone(), Open::of(caller.clone()));
                reply.with(SESSION_HEADER, &id)
            }
            Err(reply) => reply,
        }
    }

    /// Which session this request is carried out in.
    fn admitted(
        &self,
        memory: &mut Memory<'_>,
        caller: &Principal,
        (verb, tool): (&str, Option<&str>),
        presented: Option<&str>,
    ) -> Result<Place, Reply> {
        let Some(id) = presented else {
            return match self.guards.on_missing(memory.len()) {
                Missing::Refused => Err(self.refused(400, "no session: open one by `initialize`")),
                Missing::Served => Ok(Place::Passing(Open::of(caller.clone()))),
                Missing::TheOpenOne => {
                    let only = memory.keys().next().cloned();
                    only.map(Place::Kept).ok_or_else(|| self.refused(400, "no session is open"))
                }
            };
        };
        match memory.get(id) {
            Some(session) if self.guards.is_owner(&session.owner, caller) || !self.guards.minds_owner(verb, tool) => {
                Ok(Place::Kept(id.to_owned()))
            }
            Some(_) => Err(self.refused(self.guards.foreign_status(), "session not found")),
            None => match self.guards.on_unknown() {
                Unknown::Refused(status) => Err(self.refused(status, "session not found")),
                Unknown::RefusedAndKept => {
                    memory.insert(id.to_owned(), Open::of(caller.clone()));
                    Err(self.refused(404, "session not found"))
                }
                Unknown::Revived => Ok(Place::Passing(Open::of(caller.clone()))),
                Unknown::Adopted => {
                    memory.insert(id.to_owned(), Open::of(caller.clone()));
                    Ok(Place::Kept(id.to_owned()))
                }
            },
        }
    }

    fn carry_out(
        &self,
        memory: &mut Memory<'_>,
        place: &Place,
        answers: Answers,
        verb: &str,
        message: Option<Message>,
    ) -> Reply {
        match (verb, message) {
            ("GET", _) => http::quiet_stream(),
            ("DELETE", _) => {
                if let (Place::Kept(id), true) = (place, self.guards.ends()) {
                    memory.remove(id);
                }
                Reply::bare(204)
            }
            (_, Some(Message::Request(request))) => {
                let mut passing = match place {
                    Place::Passing(session) => session.clone(),
                    Place::Kept(_) => Open::of(Principal::local()),
                };
                let session = match place {
                    Place::Kept(id) => memory.get_mut(id).unwrap_or(&mut passing),
                    Place::Passing(_) => &mut passing,
                };
                http::frame(answers, &request, session.answer(&request))
            }
            _ => Reply::bare(202),
        }
    }

    fn fresh(&self, memory: &Memory<'_>) -> String {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        self.guards.new_id(made, &|id| memory.contains_key(id))
    }

    fn refused(&self, status: u16, message: &str) -> Reply {
        http::nameless(Refused::protocol(meta::INVALID_REQUEST, status, message))
    }
}

/// Where a request is carried out.
enum Place {
    /// In a session that is kept under this id.
    Kept(String),
    /// In one that lasts for this request.
    Passing(Open),
}

fn locked(memory: &Mutex<BTreeMap<String, Open>>) -> Memory<'_> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a request is of the stateless revision.
pub(crate) fn is_modern(headers: &Headers) -> bool {
    headers.one(headers::PROTOCOL_VERSION) == Some(meta::MODERN)
}

const SESSION_HEADER: &str = "mcp-session-id";
