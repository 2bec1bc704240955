//! A file of keys, line by line, so that what a person wrote into it stays where it is.

use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt, fchown},
    path::{Path, PathBuf},
};

use handfast::{KeyId, KeyUse, Keys, SecretText};

use crate::{input, output::Failure};

/// A file of keys.
pub(super) struct KeyFile {
    path: PathBuf,
    lines: Vec<Line>,
}

/// One line of it.
pub(super) enum Line {
    Key {
        key: SecretText,
        id: KeyId,
        used: KeyUse,
    },
    /// A comment, or nothing.
    Other(String),
}

impl KeyFile {
    /// Reads it.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = SecretText::new(input::read(path, "file of keys")?);
        let bad = |error: handfast::KeysError| Failure(format!("{}: {error}", path.display()));
        let keys = Keys::parse(text.expose()).map_err(bad)?;
        let used = |id| keys.uses().find(|(known, _)| *known == id).map_or(KeyUse::Opening, |(_, used)| used);
        let mut lines = Vec::new();
        for line in text.expose().lines() {
            lines.push(match line.split_whitespace().next() {
                Some(key) if !key.starts_with('#') => {
                    let id = Keys::parse(key).map_err(bad)?.current();
                    Line::Key { key: SecretText::new(key), id, used: used(id) }
                }
                _ => Line::Other(line.to_owned()),
            });
        }
        Ok(Self { path: path.to_owned(), lines })
    }

    /// Its keys, the newest first: where each stands, its id and what it is used for.
    pub(super) fn keys(&self) -> impl Iterator<Item = (usize, KeyId, KeyUse)> {
        self.lines.iter().enumerate().filter_map(|(at, line)| match line {
            Line::Key { id, used, .. } => Some((at, *id, *used)),
            Line::Other(_) => None,
        })
    }

    /// Changes what the key at this place is used for.
    pub(super) fn set(&mut self, at: usize, to: KeyUse) {
        if let Some(Line::Key { used, .. }) = self.lines.get_mut(at) {
            *used = to;
        }
    }

    /// Puts a new key before the one at this place, to open with at first.
    pub(super) fn add_before(&mut self, at: usize) -> Result<KeyId, Failure> {
        let key = Keys::generate();
        let id = Keys::parse(key.expose()).map_err(|error| Failure(error.to_string()))?.current();
        self.lines.insert(at, Line::Key { key, id, used: KeyUse::Opening });
        Ok(id)
    }

    /// Writes it: either all of it is there afterwards, or it is as it was. Who may read it stays as it is.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure(format!("cannot write {}: {error}", self.path.display()));
        // Where the name leads to another file, it is that file which is replaced.
        let path = fs::canonicalize(&self.path).map_err(failed)?;
        let beside = path.with_extension(format!("new-{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&beside).map_err(failed)?;
        let replaced = self.written(file, &path).and_then(|()| fs::rename(&beside, &path));
        if replaced.is_err() {
            let _ = fs::remove_file(&beside);
        }
        replaced.and_then(|()| super::kept_in_its_folder(&path)).map_err(failed)
    }

    fn written(&self, mut file: fs::File, path: &Path) -> std::io::Result<()> {
        for line in &self.lines {
            match line {
                Line::Key { key, used, .. } => writeln!(file, "{} {}", key.expose(), used.word())?,
                Line::Other(text) => writeln!(file, "{text}")?,
            }
        }
        let (was, is) = (fs::metadata(path)?, file.metadata()?);
        // A server that runs as somebody else must still be able to read it.
        if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
            fchown(&file, Some(was.uid()), Some(was.gid()))?;
        }
        file.set_permissions(was.permissions())?;
        file.sync_all()
    }
}
