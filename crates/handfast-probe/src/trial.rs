//! One experiment on the server: calls made as somebody, within bounds, each recorded as evidence.

mod answer;
mod session;
mod visit;

use std::time::Duration;

use handfast_wire::{
    message::Object,
    pointer,
    result::{InputRequired, Task},
};
use serde_json::{Value, json};

use crate::{
    answers,
    canary::Canary,
    discovery::emitted,
    disposition::{self, Disposition},
    evidence::Step,
    identity::Who,
    target::{Body, Call, Fault, Reply},
    verdict::{Halt, Reason, Row},
};
pub use answer::Answer;
pub use session::Session;

/// One experiment of a session.
pub struct Trial<'t, 'p> {
    /// What it shares with the others.
    pub session: &'t mut Session<'p>,
    /// The exchanges so far.
    pub steps: Vec<Step>,
}

impl<'t, 'p> Trial<'t, 'p> {
    /// An experiment without any exchange yet.
    pub fn new(session: &'t mut Session<'p>) -> Self {
        Self { session, steps: Vec::new() }
    }

    /// What is not even listed cannot be tested, and forbids a refutation.
    pub fn unlisted_rows(&self) -> Vec<Row> {
        let text = "the server lists more than the probe reads: what is beyond was not tested";
        let row = || Row::halted("listing", Halt::errored(Reason::CallLimit, text));
        self.session.surface.cut.then(row).into_iter().collect()
    }

    /// A fresh canary of this caller.
    pub fn canary(&mut self, who: Who) -> Canary {
        self.session.canaries.fresh(who)
    }

    /// One call and its answer; a task is followed to its end.
    ///
    /// # Errors
    /// A [`Halt`] when the run's bounds are reached or the server is gone.
    pub async fn call(&mut self, step: &str, who: Who, call: &Call) -> Result<Answer, Halt> {
        self.make(step, who, call, true).await
    }

    /// One call and its answer as it comes: a task is left alone.
    ///
    /// # Errors
    /// As [`Trial::call`].
    pub async fn call_once(&mut self, step: &str, who: Who, call: &Call) -> Result<Answer, Halt> {
        self.make(step, who, call, false).await
    }

    async fn make(&mut self, step: &str, who: Who, call: &Call, to_the_end: bool) -> Result<Answer, Halt> {
        (self.session.progress)(&format!("{step}: {} as {}", call.title(), who.label()));
        let reply = self.send(who, call).await?;
        let reply = match disposition::of(&reply) {
            Disposition::Task(task) => {
                let name = call.params.get("name").and_then(Value::as_str);
                self.session.answered_by_task.extend(name.map(str::to_owned));
                self.session.redactor.shorten(&task.id);
                if to_the_end { self.follow(who, task).await?.unwrap_or(reply) } else { reply }
            }
            _ => reply,
        };
        let answer = self.answered(step, who, call, reply);
        match answer.lost().filter(|halt| halt.reason == Reason::Unreachable) {
            Some(halt) => Err(halt),
            None => Ok(answer),
        }
    }

    /// Two calls at once, each by its own caller, and their answers.
    ///
    /// # Errors
    /// As [`Trial::call`]; and where one connection carries both.
    pub async fn call_together(&mut self, step: &str, calls: [(Who, &Call); 2]) -> Result<[Answer; 2], Halt> {
        (self.session.progress)(&format!("{step}: {} twice at once", calls[0].1.title()));
        let left = self.allowance()?.min(self.allowance()?);
        let together = tokio::time::timeout(left, self.session.target.send_together(calls)).await;
        let lost = || Reply::new(None, Body::Fault(Fault::TimedOut(left)));
        let replies = together.unwrap_or_else(|_| [lost(), lost()]);
        self.note_silence(&replies[0]);
        let [(a, one), (b, other)] = calls;
        let mut ended = Vec::new();
        for ((who, _), reply) in calls.into_iter().zip(replies) {
            ended.push(match disposition::of(&reply) {
                Disposition::Task(task) => self.follow(who, task).await?.unwrap_or(reply),
                _ => reply,
            });
        }
        let (Some(for_b), Some(for_a)) = (ended.pop(), ended.pop()) else {
            return Err(Halt::errored(Reason::ProbeBug, "two calls had less than two answers"));
        };
        Ok([self.answered(step, a, one, for_a), self.answered(step, b, other, for_b)])
    }

    /// Waits until something is over. What was minted before may be gone by then.
    ///
    /// # Errors
    /// A [`Halt`] when the run ends before.
    pub async fn pause(&mut self, time: Duration) -> Result<(), Halt> {
        (self.session.progress)(&format!("waiting for {} ms", time.as_millis()));
        if self.session.budget.deadline.left().is_none_or(|left| left <= time) {
            return Err(Halt::errored(
                Reason::TimedOut,
                "the time for the whole run does not allow to wait (--max-time)",
            ));
        }
        tokio::time::sleep(time).await;
        self.session.purse.clear();
        Ok(())
    }

    /// What a reply means, recorded.
    fn answered(&mut self, step: &str, who: Who, call: &Call, reply: Reply) -> Answer {
        let disposition = disposition::of(&reply);
        if let Disposition::Asked(InputRequired { state: Some(state), .. }) = &disposition {
            self.session.redactor.shorten(state);
        }
        let sent = strings_in(&Value::Object(call.params.clone()));
        self.note_minted(who, call, &reply, &sent);
        let answer = Answer {
            reply,
            disposition,
            sent,
            step: self.steps.len(),
            issued: None,
            stream: false,
            last_words: String::new(),
        };
        let mut shown = call.params.clone();
        shown.extend(call.capabilities.clone().map(|declared| ("declared".to_owned(), declared)));
        self.record(step, who, call.title(), &shown, &answer);
        answer
    }

    /// A call of a minting tool, for whatever reason, mints a handle that no report may show, and that is to be ended.
    fn note_minted(&mut self, who: Who, call: &Call, reply: &Reply, sent: &[String]) {
        let (Body::Result(result), Some(name)) = (&reply.body, call.params.get("name").and_then(Value::as_str)) else {
            return;
        };
        let kinds = self.session.map.kinds.iter().enumerate().filter(|(_, kind)| kind.mint == name);
        let minted: Vec<(usize, Value)> =
            kinds.filter_map(|(at, kind)| Some((at, emitted::again(result, &kind.spot, sent, None)?))).collect();
        for (kind, handle) in minted {
            self.shorten(&handle);
            self.session.minted.push((who, kind, handle));
        }
    }

    /// Sends a call. "Not now" (429) is no answer to it: where the server says when, it is made again then.
    async fn send(&mut self, who: Who, call: &Call) -> Result<Reply, Halt> {
        loop {
            let left = self.allowance()?;
            let sent = tokio::time::timeout(left, self.session.target.send(who, call)).await;
            let reply = sent.unwrap_or_else(|_| Reply::new(None, Body::Fault(Fault::TimedOut(left))));
            self.note_silence(&reply);
            let left = self.session.budget.deadline.left().unwrap_or_default();
            let asked = self.session.target.asked_to_wait().filter(|_| reply.status == Some(429));
            let budget = &mut self.session.budget;
            match asked.filter(|wait| *wait <= LONGEST_PAUSE && *wait < left && budget.put_off_in_a_row < MOST_PATIENCE)
            {
                Some(wait) => {
                    budget.put_off_in_a_row += 1;
                    tokio::time::sleep(wait).await;
                }
                None => {
                    // Whom a server has put off so often in vain it puts off for good.
                    if asked.is_none() {
                        budget.put_off_in_a_row = 0;
                    }
                    return Ok(reply);
                }
            }
        }
    }

    /// The time that one more call may take, if there may be one.
    fn allowance(&mut self) -> Result<Duration, Halt> {
        let budget = &mut self.session.budget;
        let Some(left) = budget.deadline.left() else {
            return Err(Halt::errored(Reason::TimedOut, "the time for the whole run is used up (--max-time)"));
        };
        if budget.calls_left == 0 {
            return Err(Halt::errored(
                Reason::CallLimit,
                "the number of calls for the whole run is used up (--max-calls)",
            ));
        }
        if budget.silent_in_a_row >= MOST_SILENCE {
            return Err(Halt::errored(Reason::TimedOut, "the server stopped answering"));
        }
        budget.calls_left -= 1;
        budget.calls_made += 1;
        Ok(left)
    }

    fn note_silence(&mut self, reply: &Reply) {
        let silent = matches!(reply.body, Body::Fault(Fault::TimedOut(_)));
        let budget = &mut self.session.budget;
        budget.silent_in_a_row = if silent { budget.silent_in_a_row + 1 } else { 0 };
    }

    /// Follows a task with `tasks/get`, at the pace that the server asks for, until it ends or the run's time is up.
    async fn follow(&mut self, who: Who, mut task: Task) -> Result<Option<Reply>, Halt> {
        for _ in 0..MOST_LOOKS {
            if task.status != "working" {
                return Ok(None);
            }
            let pause = Duration::from_millis(task.poll_interval_ms.unwrap_or(0)).min(LONGEST_PAUSE);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let mut params = Object::new();
            params.insert("taskId".into(), task.id.clone().into());
            let reply = self.send(who, &Call::new("tasks/get", params)).await?;
            let Body::Result(result) = &reply.body else { return Ok(Some(reply)) };
            let Some(seen) = handfast_wire::result::task(result) else { return Ok(Some(reply)) };
            let node = result.get("task").filter(|node| node.is_object()).unwrap_or(result);
            match seen.status.as_str() {
                "completed" => {
                    let inner = node.get("result").or_else(|| result.get("result")).cloned();
                    return Ok(inner.map(|inner| Reply { body: Body::Result(inner), ..reply }));
                }
                "failed" | "cancelled" => {
                    let why = node.pointer("/error/message").or_else(|| node.get("statusMessage"));
                    let text = why.and_then(Value::as_str).unwrap_or("the task failed").to_owned();
                    let result = json!({"isError": true, "content": [{"type": "text", "text": text}]});
                    return Ok(Some(Reply { body: Body::Result(result), ..reply }));
                }
                _ => task = Task { id: task.id, ..seen },
            }
        }
        Ok(None)
    }

    /// One call, answering honestly whatever the server asks on the way.
    ///
    /// # Errors
    /// As [`Trial::call`].
    pub async fn complete(&mut self, step: &str, who: Who, call: &Call) -> Result<Answer, Halt> {
        let mut answer = self.call(step, who, call).await?;
        let mut sent = answer.sent.clone();
        for _ in 0..MOST_ROUNDS {
            let Disposition::Asked(asked) = answer.disposition.clone() else { break };
            let canary = self.canary(who);
            let retry = self.retry(call, &asked, asked.state.clone(), &canary);
            answer = self.call(step, who, &retry).await?;
            sent.extend(answer.sent.iter().cloned());
        }
        answer.sent = sent;
        Ok(answer)
    }

    /// The call again, with answers and a state.
    pub fn retry(&self, call: &Call, asked: &InputRequired, state: Option<String>, canary: &Canary) -> Call {
        let mut retry = call.clone();
        if !asked.requests.is_empty() {
            let name = call.params.get("name").and_then(Value::as_str).unwrap_or_default();
            let fixed = self.session.profile.answers(name);
            let answers = answers::accept(asked, self.session.form, canary, &fixed);
            retry.params.insert("inputResponses".into(), Value::Object(answers));
        }
        // "If the result had no requestState the retry must not carry one."
        if let Some(state) = state {
            retry.params.insert("requestState".into(), state.into());
        }
        retry
    }

    fn record(&mut self, step: &str, who: Who, title: String, params: &Object, answer: &Answer) {
        let redactor = &self.session.redactor;
        let mut said = answer.said();
        if let Some(id) = &answer.issued {
            said = format!("{said} (issued {id})");
        }
        if !answer.reply.heard.is_empty() {
            let told = strings_in(&Value::Array(answer.reply.heard.clone())).join(" ");
            said = format!("{said} (told before it: {told})");
        }
        let shown = ["arguments", "inputResponses", "requestState", "uri", "session", "declared"];
        let params: Object = params
            .iter()
            .filter(|(name, _)| shown.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), redactor.json(value, SHOWN_ARGUMENT)))
            .collect();
        let mut step = Step {
            step: step.to_owned(),
            who: who.label(),
            call: title,
            arguments: Value::Object(params),
            disposition: answer.disposition.word(),
            answer: redactor.excerpt(&said, SHOWN_ANSWER),
            http_status: answer.reply.status,
        };
        step.call = redactor.text(&step.call);
        self.steps.push(step);
    }

    /// The exchanges so far, once more without what was learned to be a handle or a state only after it was recorded.
    pub fn finish(&mut self) -> Vec<Step> {
        let redactor = &self.session.redactor;
        let steps = std::mem::take(&mut self.steps).into_iter();
        let clean = |step: Step| Step {
            arguments: redactor.json(&step.arguments, SHOWN_ARGUMENT),
            answer: redactor.text(&step.answer),
            ..step
        };
        steps.map(clean).collect()
    }

    /// Remembers a handle, so that reports show its fingerprint.
    pub fn shorten(&mut self, handle: &Value) {
        self.session.redactor.shorten(&emitted::text_of(handle));
    }

    /// A handle as reports show it.
    pub fn shown(&self, handle: &Value) -> Value {
        self.session.redactor.json(handle, SHOWN_ARGUMENT)
    }

    /// A sentence as reports show it.
    pub fn clean(&self, text: &str) -> String {
        self.session.redactor.excerpt(text, SHOWN_ANSWER)
    }
}

/// Every string and number in a value, as text.
pub fn strings_in(value: &Value) -> Vec<String> {
    pointer::scalars(value, 2000)
        .into_iter()
        .filter_map(|(_, scalar)| match scalar {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect()
}

const MOST_SILENCE: usize = 2;
const MOST_ROUNDS: usize = 6;
const MOST_LOOKS: usize = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a call is made again that was put off.
const MOST_PATIENCE: usize = 4;
const SHOWN_ARGUMENT: usize = 120;
const SHOWN_ANSWER: usize = 300;
