//! Which children there are, and whose: one for each user or one for all, and one for each session.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use handfast::ObjectRef;
use tokio::sync::mpsc;

use super::{
    Children, StdioOptions,
    child::Child,
    ear::Loss,
    table::{Owner, Table, Talk},
};
use crate::upstream::Down;

pub(super) struct Pool {
    options: StdioOptions,
    children: Mutex<Vec<Child>>,
    uses: AtomicU64,
}

/// What is needed of a child to speak with it.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) table: Arc<Table>,
    pub(super) input: mpsc::Sender<String>,
}

impl Pool {
    pub(super) fn new(options: StdioOptions) -> Self {
        Self { options, children: Mutex::default(), uses: AtomicU64::new(0) }
    }

    pub(super) fn options(&self) -> &StdioOptions {
        &self.options
    }

    /// The child for single requests of this user, started if need be.
    pub(super) fn single(&self, owner: &Owner) -> Result<Link, Down> {
        let mut children = self.lock();
        if let Some(link) = self.living(&children, self.is_single(owner)) {
            return Ok(link);
        }
        match self.options.children {
            Children::PerPrincipal => self.start(&mut children, Talk::Single, Some(owner.clone()), None),
            Children::Shared => self.start(&mut children, Talk::Shared, None, None),
        }
    }

    /// The child for single requests of this user, if there is one.
    pub(super) fn living_single(&self, owner: &Owner) -> Option<Link> {
        self.living(&self.lock(), self.is_single(owner))
    }

    fn is_single(&self, owner: &Owner) -> impl Fn(&Child) -> bool {
        let whose = (self.options.children == Children::PerPrincipal).then_some(owner);
        move |child| child.session.is_none() && child.owner.as_ref() == whose
    }

    /// A new session, which is a child of its own: a server that speaks both ways picks one by the first message.
    pub(super) fn session(&self, owner: &Owner) -> Result<(Link, String), Down> {
        let id = ObjectRef::random().to_string();
        let link = self.start(&mut self.lock(), Talk::Session, Some(owner.clone()), Some(id.clone()))?;
        Ok((link, id))
    }

    /// The session with this id, where it is this user's. One that has ended, another's, and none at all look the same.
    pub(super) fn living_session(&self, owner: &Owner, id: &str) -> Option<Link> {
        let is_it = |child: &Child| child.session.as_deref() == Some(id) && child.owner.as_ref() == Some(owner);
        self.living(&self.lock(), is_it)
    }

    pub(super) fn end_session(&self, id: &str) {
        self.lock().retain(|child| {
            let ends = child.session.as_deref() == Some(id);
            if ends {
                child.table.end();
            }
            !ends
        });
    }

    fn living(&self, children: &[Child], is_it: impl Fn(&Child) -> bool) -> Option<Link> {
        let child = children.iter().find(|child| !child.table.is_over() && is_it(child))?;
        child.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(Link { table: Arc::clone(&child.table), input: child.input.clone() })
    }

    /// Starts a child, while nobody else does.
    fn start(
        &self,
        children: &mut Vec<Child>,
        talk: Talk,
        owner: Option<Owner>,
        session: Option<String>,
    ) -> Result<Link, Down> {
        // Those that ended at once are remembered, so that the next one is not started too soon.
        children.retain(|child| !child.table.is_over() || child.failed() > 0);
        let is_before = |child: &Child| {
            child.table.is_over() && child.owner == owner && child.session.is_some() == session.is_some()
        };
        if children.iter().any(|child| is_before(child) && child.rests()) {
            return Err(Down::Unreachable(Box::new(Loss::Ended)));
        }
        let failed = children.iter().filter(|child| is_before(child)).map(Child::failed).max().unwrap_or(0);
        children.retain(|child| !is_before(child));
        self.make_room(children)?;

        let born = self.uses.fetch_add(1, Ordering::Relaxed);
        let child = Child::start(&self.options, talk, owner, session, born, failed)
            .map_err(|error| Down::Unreachable(Box::new(error)))?;
        let link = Link { table: Arc::clone(&child.table), input: child.input.clone() };
        children.push(child);
        Ok(link)
    }

    /// Ends the child that was idle for longest, where there are too many.
    fn make_room(&self, children: &mut Vec<Child>) -> Result<(), Down> {
        let (ended, living): (Vec<usize>, Vec<usize>) =
            (0..children.len()).partition(|at| children[*at].table.is_over());
        if living.len() >= self.options.most_children {
            let free = living.into_iter().filter(|at| children[*at].table.is_free());
            let idle = free.min_by_key(|at| children[*at].used.load(Ordering::Relaxed)).ok_or(Down::Full)?;
            let child = children.remove(idle);
            child.table.end();
        } else if ended.len() >= self.options.most_children {
            children.remove(ended[0]);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
