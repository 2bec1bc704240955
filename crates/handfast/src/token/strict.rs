//! A JSON object in which every name stands once. Of two readers of one name twice, one may take the first and one the
//! last: a token of which they do not see the same is none.

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// The members of an object.
#[derive(Debug)]
pub(super) struct Members(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Once)
    }
}

struct Once;

impl<'de> Visitor<'de> for Once {
    type Value = Members;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a name stands twice"));
            }
        }
        Ok(Members(members))
    }
}

/// Reads one; `None` where it is no object, or a name stands twice in it.
pub(super) fn read(json: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice::<Members>(json).ok().map(|members| members.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_once() {
        assert_eq!(read(br#"{"a":1,"b":{}}"#).expect("an object").len(), 2);
        for bad in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, "[]", "{", r#"{} {}"#, ""] {
            assert!(read(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
