//! An answer, what it means, and what can be told from it.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::{
    disposition::{self, Disposition, Unclear},
    likeness,
    target::{Body, Fault, Reply},
    verdict::{Halt, Reason},
};

/// An answer, what it means, and what was sent to get it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As it came.
    pub reply: Reply,
    /// What it means.
    pub disposition: Disposition,
    /// Every text in the call: none of it is a marker when it comes back.
    pub sent: Vec<String>,
    /// Which exchange of the trial it was.
    pub step: usize,
    /// The session id that came with it.
    pub issued: Option<String>,
    /// A stream was attached.
    pub stream: bool,
    pub(super) last_words: String,
}

impl Answer {
    /// What came outside of any experiment.
    pub fn of(reply: Reply) -> Self {
        let disposition = disposition::of(&reply);
        Self { reply, disposition, sent: Vec::new(), step: 0, issued: None, stream: false, last_words: String::new() }
    }

    /// The result, where there is one.
    pub fn result(&self) -> Option<&Value> {
        match &self.reply.body {
            Body::Result(result) => Some(result),
            _ => None,
        }
    }

    /// Everything that came: also the words and data of a JSON-RPC error, a page that is no JSON-RPC, and what was told on
    /// the way, as the member `notified`.
    pub fn body(&self) -> Option<Cow<'_, Value>> {
        let answer = match &self.reply.body {
            Body::Result(result) => Some(Cow::Borrowed(result)),
            Body::Error(error) => Some(Cow::Owned(error.to_value())),
            Body::Bare(page) => Some(Cow::Owned(json!({"page": page}))),
            Body::Fault(_) => None,
        };
        if self.reply.heard.is_empty() {
            return answer;
        }
        let mut all = answer.map_or_else(|| json!({}), Cow::into_owned);
        if let Some(members) = all.as_object_mut() {
            members.insert("notified".to_owned(), Value::Array(self.reply.heard.clone()));
        }
        Some(Cow::Owned(all))
    }

    /// Whether both are results, and say different kinds of things.
    pub fn is_unlike(&self, other: &Self) -> bool {
        matches!((self.result(), other.result()), (Some(one), Some(other)) if !likeness::alike(one, other))
    }

    /// What the server said, for a sentence.
    pub fn said(&self) -> String {
        match &self.disposition {
            Disposition::Accepted if self.stream => "a stream of events".to_owned(),
            Disposition::Accepted => self.result().map(crate::marker::visible_text).unwrap_or_default(),
            Disposition::Refused(refusal) => refusal.to_string(),
            Disposition::Asked(asked) => {
                format!("asks for {}", asked.requests.keys().cloned().collect::<Vec<_>>().join(", "))
            }
            Disposition::Task(task) => format!("task {}", task.status),
            Disposition::Unclear(unclear) => format!("{unclear}{}", self.last_words),
        }
    }

    /// The halt that an unclear answer means: lost, late, or simply unclear.
    pub fn unclear(&self) -> Option<Halt> {
        match &self.disposition {
            Disposition::Unclear(_) | Disposition::Task(_) => {
                Some(self.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, self.said())))
            }
            _ => None,
        }
    }

    /// The halt of an answer that never came.
    pub fn lost(&self) -> Option<Halt> {
        match &self.disposition {
            Disposition::Unclear(Unclear::Fault(Fault::TimedOut(_))) => {
                Some(Halt::errored(Reason::TimedOut, self.said()))
            }
            Disposition::Unclear(Unclear::Fault(Fault::Unreachable(_))) => {
                Some(Halt::errored(Reason::Unreachable, self.said()))
            }
            _ => None,
        }
    }
}
