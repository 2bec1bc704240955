//! JSON Pointers (RFC 6901) over whole documents: every scalar with its place, and one place changed.

use serde_json::Value;

/// Escapes one segment: `~` is `~0`, `/` is `~1`.
pub fn escape(segment: &str) -> String {
    segment.replace('~', "~0").replace('/', "~1")
}

/// The last segment of a pointer, unescaped; empty for the root.
pub fn last(pointer: &str) -> String {
    pointer.rsplit('/').next().filter(|_| !pointer.is_empty()).unwrap_or_default().replace("~1", "/").replace("~0", "~")
}

/// Every value that is neither object nor array, with its pointer, in document order, at most `limit` of them.
pub fn scalars(root: &Value, limit: usize) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    collect(root, &mut String::new(), limit, &mut found);
    found
}

fn collect<'v>(value: &'v Value, at: &mut String, limit: usize, found: &mut Vec<(String, &'v Value)>) {
    if found.len() >= limit {
        return;
    }
    let length = at.len();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                at.push('/');
                at.push_str(&escape(name));
                collect(member, at, limit, found);
                at.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                at.push('/');
                at.push_str(&index.to_string());
                collect(item, at, limit, found);
                at.truncate(length);
            }
        }
        scalar => found.push((at.clone(), scalar)),
    }
}

/// Puts `new` at `pointer` and returns what stood there; `None`, and nothing changed, where nothing stood.
pub fn replace(root: &mut Value, pointer: &str, new: Value) -> Option<Value> {
    root.pointer_mut(pointer).map(|place| std::mem::replace(place, new))
}

/// Puts `new` at `pointer`, making the objects on the way; array indices must exist already.
///
/// Returns whether it could be put there.
pub fn insert(root: &mut Value, pointer: &str, new: Value) -> bool {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return false;
    }
    let mut place = root;
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        if place.is_null() {
            *place = Value::Object(serde_json::Map::new());
        }
        place = match place {
            Value::Object(members) => members.entry(name).or_insert(Value::Null),
            Value::Array(items) => match index(&name).and_then(|index| items.get_mut(index)) {
                Some(item) => item,
                None => return false,
            },
            _ => return false,
        };
    }
    *place = new;
    true
}

/// RFC 6901: digits without a leading zero, and nothing else.
fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}
