//! Whether an answer tells what others do not: by its form and its words, and by what stands still in all of the others.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use crate::{
    discovery::emitted,
    disposition::{Disposition, RefusedBy},
    likeness,
    trial::Answer,
};

/// Whether two answers are the same but for the handles in them and what differs from call to call.
pub(super) fn alike(one: &Answer, other: &Answer, handles: &[Value]) -> bool {
    let handles: Vec<String> = handles.iter().map(emitted::text_of).collect();
    let results = [one, other].map(|answer| answer.result().map(|result| without(result, &handles)));
    let same_results = match &results {
        [Some(one), Some(other)] => likeness::same(one, other),
        [None, None] => true,
        _ => false,
    };
    let same = match (&one.disposition, &other.disposition) {
        // Of the words of a tool the result says more: where they stand, and what else there is.
        (Disposition::Refused(said), Disposition::Refused(otherwise)) => {
            said.by == otherwise.by
                && match said.by {
                    RefusedBy::ToolError => same_results,
                    _ => said.normalised(&handles) == otherwise.normalised(&handles),
                }
        }
        (Disposition::Accepted, Disposition::Accepted) => same_results,
        (Disposition::Asked(_), Disposition::Asked(_)) => true,
        _ => false,
    };
    same && one.reply.status == other.reply.status
}

/// What an answer says where all of the others say one and the same other thing, whatever else differs from call to call: "status
/// 403" where each of them has 404, or something of which none of them speaks.
pub(super) fn told(answer: &Answer, others: &[Answer], handles: &[Value]) -> Option<String> {
    let handles: Vec<String> = handles.iter().map(emitted::text_of).collect();
    let here = particulars(answer, &handles);
    let others: Vec<_> = others.iter().map(|other| particulars(other, &handles)).collect();
    let (first, rest) = others.split_first()?;
    let mut still = first.iter().filter(|(at, value)| rest.iter().all(|other| other.get(*at) == Some(value)));
    let changed = still.find(|(at, value)| here.get(*at) != Some(value)).map(|(at, value)| match here.get(at) {
        Some(now) => format!("`{now}` and not `{value}` at {at}"),
        None => format!("nothing and not `{value}` at {at}"),
    });
    let is_new = |at: &&String| others.iter().all(|other| !other.contains_key(*at));
    changed.or_else(|| here.keys().find(is_new).map(|at| format!("`{}` at {at}, and nothing otherwise", here[at])))
}

/// Everything that an answer says, place by place: the words, and each thing among them that may vary from call to call.
fn particulars(answer: &Answer, handles: &[String]) -> BTreeMap<String, String> {
    let said = answer.body().map(Cow::into_owned).unwrap_or_default();
    let mut found = BTreeMap::new();
    for (at, value) in likeness::facts(&without(&said, handles)) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let varying = likeness::VARYING.find_iter(&text).enumerate();
        found.extend(varying.map(|(number, part)| (format!("{at}~{number}"), part.as_str().to_owned())));
        found.insert(at, likeness::VARYING.replace_all(&text, "<value>").into_owned());
    }
    found
}

/// A result with all handles made one: each answer may tell the one that was presented to it, or all of them.
fn without(result: &Value, handles: &[String]) -> Value {
    let mut text = result.to_string();
    for handle in handles.iter().filter(|handle| handle.len() >= SHORTEST) {
        text = text.replace(handle.as_str(), "handle0");
    }
    text.parse().unwrap_or_else(|_| result.clone())
}

/// What is shorter stands in many texts for other reasons.
const SHORTEST: usize = 3;

#[cfg(test)]
mod tests {
    use handfast_wire::message::RpcError;
    use serde_json::json;

    use super::*;
    use crate::target::{Body, Reply};

    fn error(message: &str, data: Value) -> Answer {
        let error = RpcError { code: -32602, message: message.to_owned(), data: Some(data) };
        Answer::of(Reply::new(Some(200), Body::Error(error)))
    }

    #[test]
    fn what_stands_still_in_the_others_and_not_here_tells() {
        let unknown = [error("status 404, request 17", json!({})), error("status 404, request 18", json!({}))];
        let tells = |answer: Answer| told(&answer, &unknown, &[]).is_some();
        let status = told(&error("status 403, request 19", json!({})), &unknown, &[]);
        assert_eq!(status.as_deref(), Some("`403` and not `404` at /message~0"));
        assert!(tells(error("status 404, request 19", json!({"owner": "alice"}))), "none of them speaks of an owner");
        assert!(!tells(error("status 404, request 19", json!({}))), "the number of a request tells nothing");
        assert!(!tells(error("status 404, request 17", json!({}))));
    }

    #[test]
    fn the_data_of_an_error_is_compared() {
        let of = |reason: &str, id: &str| error("cannot open", json!({"reason": reason, "trace": id}));
        let unknown = [of("not_found", "abc"), of("not_found", "bcd")];
        let reason = told(&of("forbidden", "cde"), &unknown, &[]);
        assert_eq!(reason.as_deref(), Some("`forbidden` and not `not_found` at /data/reason"));
        assert_eq!(told(&of("not_found", "cde"), &unknown, &[]), None);
    }

    #[test]
    fn what_is_told_on_the_way_counts() {
        let heard = |note: &str| {
            let mut reply = error("cannot open", json!({})).reply;
            reply.heard.push(json!({"data": note}));
            Answer::of(reply)
        };
        assert!(told(&heard("found"), &[heard("not found")], &[]).is_some());
        assert!(told(&heard("found"), &[error("cannot open", json!({}))], &[]).is_some());
    }

    #[test]
    fn handles_are_left_out() {
        let of = |handle: &str| error(&format!("no basket {handle}"), json!({"basket": handle}));
        let handles = ["bsk-1a2b", "bsk-3c4d", "bsk-5e6f"].map(Value::from);
        assert_eq!(told(&of("bsk-5e6f"), &[of("bsk-1a2b"), of("bsk-3c4d")], &handles), None);
    }
}
