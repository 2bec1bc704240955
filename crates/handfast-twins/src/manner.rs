//! How a twin speaks, as opposed to what it checks: none of this is a guard, and none of it is a flaw.

/// One manner of speaking. `PLAIN` is the honest server's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// What handles look like and where they stand.
    pub(crate) handles: Handles,
    /// What is asked before something is done.
    pub(crate) asks: Asks,
    /// Which prompts and resources ask as well.
    pub(crate) prompt_asks: bool,
    /// As above.
    pub(crate) resource_asks: bool,
    /// The state carries the free text that came with the call.
    pub(crate) keeps_reason: bool,
    /// Tool results come as tasks, where the client knows tasks.
    pub(crate) answers_with_tasks: bool,
    /// There is a list of tasks, as in the older revision.
    pub(crate) lists_tasks: bool,
    /// What of a workspace answers show, besides its handle and its owner.
    pub(crate) view: View,
    /// Answers name the owner.
    pub(crate) shows_owner: bool,
    /// Tells a stranger in a complete answer whom to ask.
    pub(crate) refers_to_owner: bool,
    /// Tools that the others do not have.
    pub(crate) further: Further,
    /// A header repeats the handle of `read_workspace`.
    pub(crate) mirrors: bool,
    /// There are tools that end a workspace.
    pub(crate) ends: bool,
    /// How long a handle lives, by the words of the tool that mints it.
    pub(crate) lifetime: Lifetime,
    /// A handle that is no good is a JSON-RPC error, and no error of the tool's.
    pub(crate) refuses_by_protocol: bool,
    /// `append_note` says what it wrote to.
    pub(crate) writer_tells: bool,
    /// Every answer of `read_workspace` carries everything that anybody stored.
    pub(crate) lists_everything: bool,
    /// Says no in a result that is no error.
    pub(crate) polite: bool,
    /// Log lines on standard output, answers out of order.
    pub(crate) noisy: bool,
    /// Takes its time to start.
    pub(crate) slow_start: bool,
}

/// What handles look like and where they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handles {
    /// `ws-` and 32 hex digits, in `structuredContent.workspace_id` and in the text.
    Standard,
    /// A JSON number that counts up.
    Numeric,
    /// Only in a sentence.
    TextOnly,
    /// Emitted as `id`, taken as `workspaceId`.
    Renamed,
    /// Taken inside an object: `target.workspace_id`.
    Nested,
    /// Only in `structuredContent`.
    StructuredOnly,
    /// `ws-` and an encoded record: whose it is, in which table, in which row.
    Record,
    /// Minted without a label: nothing of the caller's is in the object until something is written to it.
    Unlabelled,
}

impl Handles {
    /// The member under which answers give the handle.
    pub(crate) fn emitted_as(self) -> &'static str {
        if self == Self::Renamed { "id" } else { "workspace_id" }
    }

    /// The argument under which tools take it.
    pub(crate) fn taken_as(self) -> &'static str {
        if self == Self::Renamed { "workspaceId" } else { "workspace_id" }
    }
}

/// What of a workspace answers show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// The label and the notes.
    Whole,
    /// A number that the server chose for it, and nothing that the caller wrote.
    Code,
    /// How many notes there are.
    Count,
}

/// Tools that the others do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Further {
    Nothing,
    /// `list_workspaces`: everybody's, to everybody.
    Listing,
    /// `list_workspaces` and `list_labels`: the caller's own, in pages.
    Pages,
    /// `create_share_link` and `open_share_link`.
    ShareLinks,
    /// `close_workspace`.
    Closing,
    /// `remember_note` and `recall_notes`, neither of which takes a handle.
    Memory,
    /// `compare_workspaces` and `copy_notes`, which take more than one handle.
    Several,
}

/// How long a handle lives, as it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    OneHour,
    /// Without being used.
    TwoSeconds,
    /// Nothing is said of it.
    Unsaid,
}

/// What is asked before something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// One form: `confirm`.
    Confirm,
    /// First the form `confirm`, then the form `reason`.
    ConfirmThenReason,
    /// One form: which workspace it is about, from a list of one.
    Name,
    /// A visit to a page.
    Url,
    /// A completion and the roots, both at once.
    SamplingAndRoots,
    /// The older fixture form: `schema`, and the bare value as the answer.
    Bare,
}

impl Manner {
    pub(crate) const PLAIN: Self = Self {
        handles: Handles::Standard,
        asks: Asks::Confirm,
        prompt_asks: false,
        resource_asks: false,
        keeps_reason: false,
        answers_with_tasks: false,
        lists_tasks: false,
        view: View::Whole,
        shows_owner: true,
        refers_to_owner: false,
        further: Further::Nothing,
        mirrors: false,
        ends: true,
        lifetime: Lifetime::OneHour,
        refuses_by_protocol: false,
        writer_tells: true,
        lists_everything: false,
        polite: false,
        noisy: false,
        slow_start: false,
    };
}
