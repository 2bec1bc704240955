//! Calls that name their session themselves, and pages beside the endpoint: within the same bounds, and recorded alike.

use handfast_wire::message::Object;
use serde_json::Value;

use super::{Answer, Trial, strings_in};
use crate::{
    disposition::{self, Disposition, Refusal, RefusedBy, Unclear},
    evidence::Step,
    identity::Who,
    marker,
    target::{
        Body, Fault,
        session::{Visit, Visited},
    },
    verdict::{Halt, Reason},
};

impl Trial<'_, '_> {
    /// One request under a session id of its own choice, by any verb, and its answer.
    ///
    /// # Errors
    /// As [`Trial::call`].
    pub async fn visit(&mut self, step: &str, who: Who, visit: &Visit<'_>) -> Result<Answer, Halt> {
        let title = match visit.call {
            Some(call) => format!("{} {}", visit.verb.word(), call.title()),
            None => visit.verb.word().to_owned(),
        };
        (self.session.progress)(&format!("{step}: {title} as {}", who.label()));
        let left = self.allowance()?;
        let visited = match tokio::time::timeout(left, self.session.target.visit(who, visit)).await {
            Ok(visited) => visited,
            Err(_) => Visited::lost(Fault::TimedOut(left)),
        };
        self.note_silence(&visited.reply);
        let mut params = visit.call.map(|call| call.params.clone()).unwrap_or_default();
        let sent = strings_in(&Value::Object(params.clone()));
        let Visited { reply, issued, stream } = visited;
        if let Some(id) = &issued {
            self.session.redactor.name_session(id);
        }
        let mut disposition = disposition::of_visit(visit.verb, stream, &reply);
        if let (Some(errand), Some(call), Body::Result(result)) = (&self.session.errand, visit.call, &reply.body)
            && disposition == Disposition::Accepted
        {
            let text = marker::visible_text(result);
            if errand.is_declined(call, result) {
                disposition = Disposition::Refused(Refusal { by: RefusedBy::Words, text });
            } else if errand.is_unlike(call, result) && !self.session.canaries.planted(&text) {
                disposition = Disposition::Unclear(Unclear::Unlike(text));
            }
        }
        let answer =
            Answer { reply, disposition, sent, step: self.steps.len(), issued, stream, last_words: String::new() };
        let session = visit.session.map_or(Value::from("none"), |id| self.session.redactor.name_session(id).into());
        params.insert("session".into(), session);
        self.record(step, who, title, &params, &answer);
        match answer.lost().filter(|halt| halt.reason == Reason::Unreachable) {
            Some(halt) => Err(halt),
            None => Ok(answer),
        }
    }

    /// The status and text of a page beside the endpoint, and which exchange that was. What a page says is not quoted: it may
    /// hold what is somebody else's.
    ///
    /// # Errors
    /// A [`Halt`] when the run's bounds are reached.
    pub async fn page(
        &mut self,
        step: &str,
        who: Who,
        path: &str,
    ) -> Result<(usize, Result<(u16, String), Fault>), Halt> {
        let left = self.allowance()?;
        let page = tokio::time::timeout(left, self.session.target.page(who, path)).await;
        let page = page.unwrap_or(Err(Fault::TimedOut(left)));
        self.steps.push(Step {
            step: step.to_owned(),
            who: who.label(),
            call: format!("GET {path}"),
            arguments: Value::Object(Object::new()),
            disposition: match page.as_ref().map(|(status, _)| *status) {
                Ok(200..300) => "accepted",
                Ok(400..500) => "refused",
                _ => "unclear",
            },
            answer: page.as_ref().map_or_else(ToString::to_string, |(_, text)| format!("{} bytes", text.len())),
            http_status: page.as_ref().ok().map(|(status, _)| *status),
        });
        Ok((self.steps.len() - 1, page))
    }
}
