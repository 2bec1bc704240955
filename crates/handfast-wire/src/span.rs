//! JSON text with the place of everything in it, so that one value can be changed and all other bytes stay as they were
//! received: numbers, the order of members, white space, escapes.
//!
//! Stricter than JSON in one respect: no object has two members of one name. Two readers that disagree about which of
//! them counts would see two different messages.

use std::{borrow::Cow, ops::Range};

use thiserror::Error;

/// A value, and where it stands in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'t> {
    /// Its bytes in the text.
    pub at: Range<usize>,
    /// What it is.
    pub kind: Kind<'t>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind<'t> {
    /// An object, its members in their order.
    Object(Vec<Member<'t>>),
    /// An array.
    Array(Vec<Node<'t>>),
    /// A string, unescaped.
    Text(Cow<'t, str>),
    /// A number, as it is written.
    Number,
    /// `true`, `false` or `null`.
    Literal,
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'t> {
    /// Where its name stands, with its quotes.
    pub name_at: Range<usize>,
    /// Its name, unescaped.
    pub name: Cow<'t, str>,
    /// Its value.
    pub value: Node<'t>,
}

/// Why a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotRead {
    /// It is no JSON from this byte on.
    #[error("not JSON at byte {0}")]
    Json(usize),
    /// It is nested deeper than it may be.
    #[error("JSON nested deeper than {0} levels")]
    Deep(usize),
    /// An object has two members of one name; the second is here.
    #[error("a member that is there already, at byte {0}")]
    Twice(usize),
}

/// How deep a text may be nested.
pub const DEEPEST: usize = 128;

/// Reads a text that is one JSON value.
///
/// # Errors
/// It is none, or nested deeper than [`DEEPEST`], or has two members of one name in an object.
pub fn parse(text: &str) -> Result<Node<'_>, NotRead> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    let node = reader.value(DEEPEST)?;
    reader.blank();
    if reader.at == text.len() { Ok(node) } else { Err(NotRead::Json(reader.at)) }
}

/// The text with these places changed. Places that overlap are an error of the caller's: the earlier one wins.
#[must_use]
pub fn spliced(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(place, _)| place.start);
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (place, new) in changes {
        if place.start < from {
            continue;
        }
        out.push_str(&text[from..place.start]);
        out.push_str(&new);
        from = place.end;
    }
    out.push_str(&text[from..]);
    out
}

impl<'t> Node<'t> {
    /// The member of this name, where this is an object that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node<'t>> {
        self.members().iter().find(|member| member.name == name).map(|member| &member.value)
    }

    /// Its members; none where it is no object.
    #[must_use]
    pub fn members(&self) -> &[Member<'t>] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// Its items; none where it is no array.
    #[must_use]
    pub fn items(&self) -> &[Node<'t>] {
        match &self.kind {
            Kind::Array(items) => items,
            _ => &[],
        }
    }

    /// The string that it is.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn raw<'s>(&self, text: &'s str) -> &'s str {
        &text[self.at.clone()]
    }

    /// What stands at a JSON Pointer (RFC 6901), where `*` stands for every item of an array.
    #[must_use]
    pub fn at_pointer(&self, pointer: &str) -> Vec<&Node<'t>> {
        let mut found = vec![self];
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            found = found.into_iter().flat_map(|node| node.step(&name)).collect();
        }
        found
    }

    fn step(&self, name: &str) -> Vec<&Node<'t>> {
        match &self.kind {
            Kind::Object(_) => self.get(name).into_iter().collect(),
            Kind::Array(items) if name == "*" => items.iter().collect(),
            Kind::Array(items) => {
                let index = name.parse().ok().filter(|index: &usize| index.to_string() == name);
                index.and_then(|index| items.get(index)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn wrong<T>(&self) -> Result<T, NotRead> {
        Err(NotRead::Json(self.at))
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.blank();
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Result<Node<'t>, NotRead> {
        self.blank();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{' | b'[') if depth == 0 => return Err(NotRead::Deep(DEEPEST)),
            Some(b'{') => self.object(depth - 1)?,
            Some(b'[') => self.array(depth - 1)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return self.wrong(),
        };
        Ok(Node { at: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'t>, NotRead> {
        self.at += 1;
        let mut members: Vec<Member<'t>> = Vec::new();
        if self.eat(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            self.blank();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return self.wrong();
            }
            let name = self.string()?;
            let name_at = start..self.at;
            if !self.eat(b':') {
                return self.wrong();
            }
            let value = self.value(depth)?;
            members.push(Member { name_at, name, value });
            if self.eat(b'}') {
                return each_once(members);
            }
            if !self.eat(b',') {
                return self.wrong();
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Kind<'t>, NotRead> {
        self.at += 1;
        let mut items = Vec::new();
        if self.eat(b']') {
            return Ok(Kind::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            if self.eat(b']') {
                return Ok(Kind::Array(items));
            }
            if !self.eat(b',') {
                return self.wrong();
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, NotRead> {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0..=0x1f) | None => return self.wrong(),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at).ok_or(NotRead::Json(start))?;
        match escaped {
            false => Ok(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
            true => serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| NotRead::Json(start)),
        }
    }

    fn number(&mut self) -> Result<Kind<'t>, NotRead> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Kind::Number)
    }

    fn digits(&mut self) -> Result<(), NotRead> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.wrong() } else { Ok(()) }
    }

    fn word(&mut self, word: &str) -> Result<Kind<'t>, NotRead> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.wrong();
        }
        self.at += word.len();
        Ok(Kind::Literal)
    }
}

/// An object, if no name stands in it twice.
fn each_once(members: Vec<Member<'_>>) -> Result<Kind<'_>, NotRead> {
    let twice = if members.len() <= FEW {
        members.iter().enumerate().find(|(at, member)| members[..*at].iter().any(|known| known.name == member.name))
    } else {
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        members.iter().enumerate().find(|(_, member)| !seen.insert(&*member.name))
    };
    match twice {
        Some((_, member)) => Err(NotRead::Twice(member.name_at.start)),
        None => Ok(Kind::Object(members)),
    }
}

/// Up to so many, comparing each with each is the quickest.
const FEW: usize = 16;
